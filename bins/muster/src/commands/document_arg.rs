//! A document on the command line: JSON, or `@FILE` with JSON or YAML.

use anyhow::{Context as _, anyhow};
use serde_json::Value;

/// Reads what was given for `flag`.
pub fn read(flag: &str, text: &str) -> anyhow::Result<Value> {
    let Some(path) = text.strip_prefix('@') else {
        return serde_json::from_str(text).map_err(|error| {
            anyhow!("{flag} is not JSON ({error}); quote it for the shell, or name a file: {flag} @FILE")
        });
    };
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {path}, named by {flag}"))?;
    serde_saphyr::from_str(&text).map_err(|error| anyhow!("{path} is neither JSON nor YAML: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_stands_on_the_command_line_and_yaml_in_a_file() {
        assert_eq!(read("--input", r#"{"a": [1]}"#).unwrap(), json!({"a": [1]}));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data.yaml");
        std::fs::write(&path, "a:\n- 1\n").unwrap();
        assert_eq!(read("--input", &format!("@{}", path.display())).unwrap(), json!({"a": [1]}));
    }

    #[test]
    fn what_cannot_be_read_names_the_flag() {
        assert!(read("--input", "{a").unwrap_err().to_string().starts_with("--input is not JSON"));
        assert!(read("--result", "@gone").unwrap_err().to_string().contains("gone, named by --result"));
    }
}
