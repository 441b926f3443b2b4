//! Guides as scripts: what they tell to type is typed.

use std::path::Path;

/// The files and commands of a guide, in order, as one script.
///
/// A block that begins with `sh tour` is commands; one whose first line ends in ` file=NAME` is a file.
pub fn script(guide: &str) -> String {
    let mut lines = Vec::new();
    let mut inside = None;
    for line in guide.lines() {
        match (line, inside) {
            ("```sh tour", _) => inside = Some(false),
            ("```", Some(is_file)) => {
                if is_file {
                    lines.push("END".to_owned());
                }
                inside = None;
            }
            (line, None) => {
                if let Some((_, name)) = line.split_once(" file=") {
                    lines.push(format!("cat > {name} <<'END'"));
                    inside = Some(true);
                }
            }
            (line, Some(_)) => lines.push(line.to_owned()),
        }
    }
    lines.join("\n")
}

/// The root of the project.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("e2e lies in the repository")
}
