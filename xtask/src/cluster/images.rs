//! Images of one layer, made here: nothing is fetched from a registry.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::layout::Layout;
use super::node_parts::NodeParts;
use crate::run;

/// A shell and what comes with busybox.
pub const SHELL: &str = "muster.local/shell:1";
/// The first process of every pod.
pub const PAUSE: &str = "muster.local/pause:1";

/// The image of a server that was built here; each build is another one.
const SERVER: &str = "muster.local/muster";
/// Whoever is nobody in particular.
const NOBODY: &str = "65532:65532";

/// Makes both and gives them to containerd.
pub fn import(layout: &Layout, parts: &NodeParts, socket: &Path) -> Result<()> {
    let dir = layout.file("images");
    let shell = dir.join("shell");
    make_shell(&shell.join("layer"), &parts.busybox)?;
    let pause = dir.join("pause");
    copy(&parts.pause, &pause.join("layer/pause"))?;
    for (image, name, command) in [(shell, SHELL, "sh"), (pause, PAUSE, "/pause")] {
        pack(&image, name, &json!({ "Cmd": [command], "Env": ["PATH=/bin"] }))?;
        give(&image, name, parts, socket)?;
    }
    fs::remove_dir_all(&dir).context("cannot remove the files of images")
}

/// Makes an image of a program with the libraries it needs, and gives it to containerd. Returns its name.
pub fn import_program(layout: &Layout, parts: &NodeParts, socket: &Path, program: &Path) -> Result<String> {
    let digest = digest_of(program)?;
    let name = format!("{SERVER}:{}", digest.get(..16).context("a digest is longer")?);
    let mut known = ctr(parts, socket);
    if run::quietly(known.args(["images", "ls", "-q"]))?.lines().any(|line| line == name) {
        return Ok(name);
    }
    let dir = layout.file(&format!("image-{}", std::process::id()));
    let layer = dir.join("layer");
    for library in libraries_of(program)? {
        copy(&library, &layer.join(library.strip_prefix("/").unwrap_or(&library)))?;
    }
    copy(program, &layer.join("muster"))?;
    if run::find_in_path("strip").is_some() {
        run::quietly(Command::new("strip").arg(layer.join("muster")))?;
    }
    pack(&dir, &name, &json!({ "Entrypoint": ["/muster"], "User": NOBODY }))?;
    give(&dir, &name, parts, socket)?;
    fs::remove_dir_all(&dir).context("cannot remove the files of images")?;
    Ok(name)
}

/// Where the libraries of a program are, its loader among them.
fn libraries_of(program: &Path) -> Result<Vec<PathBuf>> {
    let said = run::quietly(Command::new("ldd").arg(program))?;
    let path = |line: &str| line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from);
    Ok(said.lines().filter_map(path).collect())
}

fn digest_of(file: &Path) -> Result<String> {
    let sum = run::quietly(Command::new("sha256sum").arg(file))?;
    Ok(sum.split(' ').next().context("sha256sum said nothing")?.to_owned())
}

fn ctr(parts: &NodeParts, socket: &Path) -> Command {
    let mut ctr = Command::new(&parts.ctr);
    ctr.arg("-a").arg(socket).args(["-n", "k8s.io"]);
    ctr
}

fn give(image: &Path, name: &str, parts: &NodeParts, socket: &Path) -> Result<()> {
    let mut ctr = ctr(parts, socket);
    ctr.args(["images", "import"]).arg(image.join("image.tar"));
    run::quietly(&mut ctr).map(drop).with_context(|| format!("containerd does not take the image {name}"))
}

fn make_shell(layer: &Path, busybox: &Path) -> Result<()> {
    copy(busybox, &layer.join("bin/busybox"))?;
    for applet in run::quietly(Command::new(busybox).arg("--list"))?.lines().filter(|name| *name != "busybox")
    {
        symlink("busybox", layer.join("bin").join(applet))
            .with_context(|| format!("cannot link {applet}"))?;
    }
    for name in ["tmp", "etc"] {
        fs::create_dir_all(layer.join(name)).context("cannot make the files of an image")?;
    }
    fs::write(layer.join("etc/passwd"), "root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
        .context("cannot make the files of an image")
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let dir = to.parent().context("a file has a directory")?;
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    fs::copy(from, to).map(drop).with_context(|| format!("cannot copy {}", from.display()))
}

/// Turns `layer` into `image.tar`, as `docker save` writes it.
fn pack(dir: &Path, name: &str, config: &Value) -> Result<()> {
    run::quietly(
        Command::new("tar")
            .arg("-C")
            .arg(dir.join("layer"))
            .args(["--owner=0", "--group=0", "-cf"])
            .args([dir.join("layer.tar"), ".".into()]),
    )?;
    let digest = digest_of(&dir.join("layer.tar"))?;
    let settings = json!({
        "architecture": architecture(), "os": "linux",
        "config": config,
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{digest}")] },
    });
    let manifest = json!([{ "Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"] }]);
    for (file, text) in [("config.json", settings), ("manifest.json", manifest)] {
        fs::write(dir.join(file), text.to_string()).context("cannot write an image")?;
    }
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(dir).args(["-cf"]).arg(dir.join("image.tar")).args([
        "config.json",
        "manifest.json",
        "layer.tar",
    ]);
    run::quietly(&mut tar).map(drop)
}

/// In the words of images.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
