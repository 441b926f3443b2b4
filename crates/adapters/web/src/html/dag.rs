//! Groups of a job and what each waits for, drawn from left to right.

use std::collections::HashMap;

use maud::{Markup, html};
use muster_types::job::{GroupSummary, JobGroup};

const BOX: (usize, usize) = (170, 54);
const GAP: (usize, usize) = (60, 18);

/// Where each group is: its column is one behind the last it waits for.
fn columns(groups: &[JobGroup]) -> Vec<usize> {
    let places: HashMap<&str, usize> =
        groups.iter().enumerate().map(|(at, group)| (group.name.as_str(), at)).collect();
    let mut columns = vec![0; groups.len()];
    // Circles are refused when a job is made; were there one, this would end all the same.
    for _ in 0..groups.len().min(64) {
        let mut changed = false;
        for (at, group) in groups.iter().enumerate() {
            let behind = group.depends_on.iter().filter_map(|name| places.get(name.as_str()));
            let column = behind.map(|before| columns[*before] + 1).max().unwrap_or(0);
            changed |= column > columns[at];
            columns[at] = columns[at].max(column);
        }
        if !changed {
            break;
        }
    }
    columns
}

/// The picture. `link` gives the address of a group.
pub fn draw(groups: &[JobGroup], summaries: &[GroupSummary], link: impl Fn(&str) -> String) -> Markup {
    let columns = columns(groups);
    let mut rows = vec![0; columns.iter().max().map_or(0, |last| last + 1)];
    let mut places = HashMap::new();
    for (group, column) in groups.iter().zip(&columns) {
        let (x, y) = (column * (BOX.0 + GAP.0) + 10, rows[*column] * (BOX.1 + GAP.1) + 10);
        rows[*column] += 1;
        places.insert(group.name.as_str(), (x, y));
    }
    let width = rows.len() * (BOX.0 + GAP.0);
    let height = rows.iter().max().copied().unwrap_or(0) * (BOX.1 + GAP.1) + 10;
    let summary = |name: &str| summaries.iter().find(|summary| summary.name == name);
    let edges = groups.iter().flat_map(|group| {
        let to = places[group.name.as_str()];
        let before = group.depends_on.iter().filter_map(|name| places.get(name.as_str()));
        let when = group.when();
        before.map(move |from| (*from, to, when)).collect::<Vec<_>>()
    });
    html! {
        div.scroll {
            svg.dag width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } role="img" aria-label="What waits for what" {
                @for ((x1, y1), (x2, y2), when) in edges {
                    @let (from, to) = ((x1 + BOX.0, y1 + BOX.1 / 2), (x2, y2 + BOX.1 / 2));
                    @let middle = usize::midpoint(from.0, to.0);
                    path class={ "edge when-" (when) } d={ "M" (from.0) " " (from.1) "C" (middle) " " (from.1) " " (middle) " " (to.1) " " (to.0) " " (to.1) } {
                        title { "when " (when) }
                    }
                }
                @for group in groups {
                    @let (x, y) = places[group.name.as_str()];
                    @let standing = summary(&group.name);
                    @let word = standing.map_or("Created", |standing| standing.state.as_str());
                    a href=(link(&group.name)) {
                        g class={ "group " (word) } {
                            rect x=(x) y=(y) width=(BOX.0) height=(BOX.1) rx="8" {}
                            text.name x=(x + 12) y=(y + 22) { (short(&group.name)) }
                            text.word x=(x + 12) y=(y + 41) {
                                (word)
                                @if let Some(standing) = standing { " " (standing.counts.ended()) "/" (standing.total) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn short(name: &str) -> String {
    if name.chars().count() <= 20 { name.to_owned() } else { name.chars().take(19).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, behind: &[&str]) -> JobGroup {
        let depends_on = behind.iter().map(|name| (*name).to_owned()).collect();
        JobGroup { name: name.to_owned(), depends_on, ..JobGroup::default() }
    }

    #[test]
    fn a_group_is_right_of_all_it_waits_for() {
        let groups = [group("d", &["b", "c"]), group("c", &["b"]), group("b", &["a"]), group("a", &[])];
        assert_eq!(columns(&groups), [3, 2, 1, 0]);
        let drawn = draw(&groups, &[], |name| format!("/x/{name}")).into_string();
        assert_eq!(drawn.matches("class=\"edge").count(), 4);
    }

    #[test]
    fn a_circle_does_not_hang() {
        let groups = [group("a", &["b"]), group("b", &["a"])];
        assert!(columns(&groups).iter().all(|column| *column <= 64));
    }
}
