//! Images of one layer, made here: nothing is fetched from a registry.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;

use super::layout::Layout;
use super::node_parts::NodeParts;
use crate::run;

/// A shell and what comes with busybox.
pub const SHELL: &str = "muster.local/shell:1";
/// The first process of every pod.
pub const PAUSE: &str = "muster.local/pause:1";

/// Makes both and gives them to containerd.
pub fn import(layout: &Layout, parts: &NodeParts, socket: &Path) -> Result<()> {
    let dir = layout.file("images");
    let shell = dir.join("shell");
    make_shell(&shell.join("layer"), &parts.busybox)?;
    let pause = dir.join("pause");
    copy(&parts.pause, &pause.join("layer/pause"))?;
    for (image, name, command) in [(shell, SHELL, "sh"), (pause, PAUSE, "/pause")] {
        pack(&image, name, command)?;
        let mut ctr = Command::new(&parts.ctr);
        ctr.arg("-a").arg(socket).args(["-n", "k8s.io", "images", "import"]).arg(image.join("image.tar"));
        run::quietly(&mut ctr).with_context(|| format!("containerd does not take the image {name}"))?;
    }
    fs::remove_dir_all(&dir).context("cannot remove the files of images")
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
fn pack(dir: &Path, name: &str, command: &str) -> Result<()> {
    run::quietly(
        Command::new("tar")
            .arg("-C")
            .arg(dir.join("layer"))
            .args(["--owner=0", "--group=0", "-cf"])
            .args([dir.join("layer.tar"), ".".into()]),
    )?;
    let sum = run::quietly(Command::new("sha256sum").arg(dir.join("layer.tar")))?;
    let digest = sum.split(' ').next().context("sha256sum said nothing")?;
    let settings = json!({
        "architecture": architecture(), "os": "linux",
        "config": { "Cmd": [command], "Env": ["PATH=/bin"] },
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
