//! Tables as the server sends them (`meta.k8s.io` `Table`), as aligned text.
//!
//! A table may come in parts (pages of a list, events of a watch): the names of the columns are printed once, and a
//! column never becomes narrower than it was.

use anyhow::Context as _;
use serde_json::Value;

/// Space between columns.
const GAP: usize = 3;

/// How a table looks.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// All columns, not only the important ones.
    pub wide: bool,
    /// A first column with the namespace.
    pub namespace: bool,
    /// No line with the names of the columns.
    pub no_headers: bool,
    /// What stands before each name (`task.muster.dev/`).
    pub prefix: String,
}

/// A table that is being printed.
#[derive(Debug, Default)]
pub struct Table {
    look: Look,
    columns: Vec<Column>,
    widths: Vec<usize>,
    begun: bool,
}

#[derive(Debug)]
struct Column {
    name: String,
    shown: bool,
    is_name: bool,
}

impl Table {
    /// A table of which nothing is printed yet.
    pub fn new(look: Look) -> Self {
        Self { look, ..Self::default() }
    }

    /// True if a row was rendered.
    pub fn has_rows(&self) -> bool {
        self.begun
    }

    /// The text of a part; `remark` stands behind each row.
    pub fn render(&mut self, part: &Value, remark: &str) -> anyhow::Result<String> {
        let rows = part["rows"].as_array().filter(|_| part["kind"] == "Table");
        let rows = rows.context("the server did not answer with a table; try -o yaml or -o name")?;
        self.learn_columns(part);
        let mut lines: Vec<Vec<String>> = rows.iter().map(|row| self.cells(row)).collect();
        if lines.is_empty() {
            return Ok(String::new());
        }
        if !self.begun && !self.look.no_headers {
            lines.insert(0, self.header());
        }
        self.widths.resize(lines.first().map_or(0, Vec::len), 0);
        for line in &lines {
            for (width, cell) in self.widths.iter_mut().zip(line) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for (index, line) in lines.iter().enumerate() {
            let is_header = index == 0 && !self.begun && !self.look.no_headers;
            let remark = if is_header { "" } else { remark };
            push_line(line, &self.widths, remark, &mut text);
        }
        self.begun = true;
        Ok(text)
    }

    fn learn_columns(&mut self, part: &Value) {
        let Some(definitions) = part["columnDefinitions"].as_array().filter(|all| !all.is_empty()) else {
            return;
        };
        let column = |definition: &Value| Column {
            name: definition["name"].as_str().unwrap_or_default().to_uppercase(),
            shown: self.look.wide || definition["priority"].as_i64().unwrap_or(0) == 0,
            is_name: definition["format"] == "name",
        };
        self.columns = definitions.iter().map(column).collect();
    }

    fn header(&self) -> Vec<String> {
        let namespace = self.look.namespace.then(|| "NAMESPACE".to_owned());
        let shown = self.columns.iter().filter(|column| column.shown);
        namespace.into_iter().chain(shown.map(|column| column.name.clone())).collect()
    }

    fn cells(&self, row: &Value) -> Vec<String> {
        let namespace = self.look.namespace.then(|| {
            let namespace = row["object"]["metadata"]["namespace"].as_str().unwrap_or_default();
            plain(namespace)
        });
        let cells = self.columns.iter().enumerate().filter(|(_, column)| column.shown);
        let cells = cells.map(|(index, column)| {
            let text = cell_text(&row["cells"][index]);
            if column.is_name { format!("{}{text}", self.look.prefix) } else { text }
        });
        namespace.into_iter().chain(cells).collect()
    }
}

/// Aligned text of rows that were made here; the first line is the header.
pub fn align(lines: &[Vec<String>]) -> String {
    let mut widths = vec![0; lines.iter().map(Vec::len).max().unwrap_or(0)];
    for line in lines {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for line in lines {
        push_line(line, &widths, "", &mut text);
    }
    text
}

fn push_line(cells: &[String], widths: &[usize], remark: &str, out: &mut String) {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths) {
        line.push_str(cell);
        line.extend(std::iter::repeat_n(' ', width + GAP - cell.chars().count()));
    }
    line.push_str(remark);
    out.push_str(line.trim_end());
    out.push('\n');
}

fn cell_text(cell: &Value) -> String {
    match cell {
        Value::Null => "<none>".to_owned(),
        Value::String(text) => plain(text),
        other => other.to_string(),
    }
}

/// Text that cannot move the cursor or start a new line.
pub fn plain(text: &str) -> String {
    if text.chars().any(char::is_control) { text.escape_debug().to_string() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn part(names: &[&str]) -> Value {
        let rows: Vec<_> = names
            .iter()
            .map(|name| {
                let object = json!({"metadata": {"namespace": "ns"}});
                json!({"cells": [name, "Ready", null, "3m"], "object": object})
            })
            .collect();
        json!({
            "kind": "Table",
            "columnDefinitions": [
                {"name": "Name", "format": "name", "priority": 0}, {"name": "State"},
                {"name": "Message", "priority": 1}, {"name": "Age"},
            ],
            "rows": rows,
        })
    }

    #[test]
    fn columns_are_aligned_and_less_important_ones_left_out() {
        let text = Table::new(Look::default()).render(&part(&["a", "longer-name"]), "").unwrap();
        assert_eq!(
            text,
            "NAME          STATE   AGE\n\
             a             Ready   3m\n\
             longer-name   Ready   3m\n"
        );
    }

    #[test]
    fn a_wide_table_of_all_namespaces_has_all_columns() {
        let look = Look { wide: true, namespace: true, ..Look::default() };
        let text = Table::new(look).render(&part(&["a"]), "").unwrap();
        assert_eq!(
            text,
            "NAMESPACE   NAME   STATE   MESSAGE   AGE\n\
             ns          a      Ready   <none>    3m\n"
        );
    }

    #[test]
    fn the_header_is_printed_once_and_columns_keep_their_width() {
        let mut table = Table::new(Look::default());
        table.render(&part(&["longer"]), "").unwrap();
        let event =
            json!({"kind": "Table", "columnDefinitions": [], "rows": [{"cells": ["b", "x", 1, "0s"]}]});
        assert_eq!(table.render(&event, "(deleted)").unwrap(), "b        x       0s    (deleted)\n");
    }

    #[test]
    fn several_resources_are_told_apart_by_a_prefix() {
        let look = Look { prefix: "task.muster.dev/".into(), no_headers: true, ..Look::default() };
        let text = Table::new(look).render(&part(&["a"]), "").unwrap();
        assert_eq!(text, "task.muster.dev/a   Ready   3m\n");
    }

    #[test]
    fn cells_cannot_play_with_the_terminal() {
        let text = Table::new(Look::default()).render(&part(&["a\u{1b}[2J\nb"]), "").unwrap();
        assert!(text.contains(r"a\u{1b}[2J\nb"), "{text}");
    }

    #[test]
    fn an_answer_that_is_no_table_is_refused_and_an_empty_one_prints_nothing() {
        let mut table = Table::new(Look::default());
        assert!(table.render(&json!({"kind": "TaskList", "items": []}), "").is_err());
        assert_eq!(table.render(&part(&[]), "").unwrap(), "");
        assert!(!table.has_rows());
    }
}
