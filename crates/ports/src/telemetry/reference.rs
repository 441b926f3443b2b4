//! The page that lists every number, made from the catalog.

use super::{Metric, Sort, catalog};

/// The text of `docs/reference/metrics.md`.
pub fn reference() -> String {
    let mut text = "# Metrics\n\n\
        `GET /metrics` tells these numbers in the text form Prometheus reads. Names and labels stay as they are from one release to\n\
        the next. A number with labels appears once there is something to count. This page is made from the catalog in\n\
        `crates/ports/src/telemetry/catalog.rs`; a test compares them.\n\n\
        | name | sort | labels | what it tells |\n|---|---|---|---|\n"
        .to_owned();
    for metric in catalog::ALL {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let (sort, labels) = (sort(metric.sort), labels.join(", "));
        text += &format!("| `{}` | {sort} | {labels} | {} |\n", shown_name(*metric), metric.help);
    }
    text
}

/// The name as it is asked for: a counter ends in `_total`, a histogram in `_bucket`, `_sum` and `_count`.
fn shown_name(metric: Metric) -> String {
    match metric.sort {
        Sort::Counter => format!("{}_total", metric.name),
        Sort::Gauge | Sort::Quick | Sort::Slow | Sort::Size => metric.name.to_owned(),
    }
}

fn sort(sort: Sort) -> &'static str {
    match sort {
        Sort::Counter => "counter",
        Sort::Gauge => "gauge",
        Sort::Quick | Sort::Slow | Sort::Size => "histogram",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_page_of_metrics_is_what_the_catalog_says() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");
        if std::env::var_os("MUSTER_WRITE_DOCS").is_some() {
            std::fs::write(page, reference()).unwrap();
        }
        let written = std::fs::read_to_string(page).unwrap_or_default();
        let command = "MUSTER_WRITE_DOCS=1 cargo test -p muster-ports --lib page_of_metrics";
        assert!(
            written == reference(),
            "docs/reference/metrics.md is not what the catalog says: run `{command}`"
        );
    }

    #[test]
    fn every_name_occurs_once() {
        let names: BTreeSet<_> = catalog::ALL.iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), catalog::ALL.len());
    }
}
