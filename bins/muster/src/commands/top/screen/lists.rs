//! The lists: what runs, waits, failed, is done; robots.

use muster_types::{State, Timestamp};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Borders, Cell, Row as TableRow, Table};

use super::super::detail::bar;
use super::super::model::Model;
use super::super::paint::Paint;
use super::super::panels::{Panel, Window};
use super::super::robot::Robot;
use super::super::row::{Id, Row};
use super::super::rows::Section;
use crate::output::age;

/// Width of a progress bar.
const BAR: usize = 10;
/// Widest column of names, in hundredths of the screen.
const NAMES: usize = 40;
/// Least lines of a list with its title.
const LEAST: u16 = 2;

/// Draws all lists; the one that has the keys gets most of the room.
pub fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, paint: Paint) {
    let shown = Panel::ALL.iter().filter(|panel| **panel != Panel::Robots || model.robots.is_some());
    let shown: Vec<Panel> = shown.copied().collect();
    let room = |panel: &Panel| match *panel == model.panels.focus {
        true => Constraint::Fill(3),
        false if fits_all(area, shown.len()) => Constraint::Fill(1),
        false => Constraint::Length(1),
    };
    let places = Layout::vertical(shown.iter().map(room)).split(area);
    for (panel, place) in shown.iter().zip(places.iter()) {
        draw_panel(frame, *place, *panel, model, paint);
    }
}

fn fits_all(area: Rect, count: usize) -> bool {
    usize::from(area.height) >= (count + 2) * usize::from(LEAST)
}

fn draw_panel(frame: &mut Frame<'_>, area: Rect, panel: Panel, model: &Model, paint: Paint) {
    let height = usize::from(area.height.saturating_sub(1));
    let width = usize::from(area.width);
    let (title, table) = match panel {
        Panel::Tasks(section) => {
            let window = model.tasks(section, height);
            let title = title(section_name(section), window.matching, model.rows.len_of(section));
            (title, task_table(section, &window, model, paint, width))
        }
        Panel::Robots => {
            let window = model.robots(height);
            let all = model.robots.as_ref().map_or(0, std::collections::BTreeMap::len);
            (title("Robots", window.matching, all), robot_table(&window, model, paint, width))
        }
    };
    let has_keys = panel == model.panels.focus;
    let style = if has_keys { paint.focus() } else { paint.dim() };
    let mark = if has_keys { "▶ " } else { "  " };
    let block = Block::new()
        .borders(Borders::TOP)
        .border_style(style)
        .title(Line::from(vec![Span::raw(mark), Span::raw(title)]).style(style));
    frame.render_widget(table.block(block), area);
}

fn section_name(section: Section) -> &'static str {
    match section {
        Section::Running => "Running",
        Section::Waiting => "Waiting",
        Section::Failed => "Failed",
        Section::Done => "Done",
    }
}

fn title(name: &str, matching: usize, all: usize) -> String {
    if matching == all { format!("{name} {all} ") } else { format!("{name} {matching} of {all} ") }
}

fn task_table<'a>(
    section: Section,
    window: &Window<&'a Row>,
    model: &Model,
    paint: Paint,
    width: usize,
) -> Table<'a> {
    let names = window.items.iter().map(|row| shown_name(&row.id, model)).collect::<Vec<_>>();
    let wide = name_width(&names, width);
    let focused = model.panels.focus == Panel::Tasks(section);
    let rows = window.items.iter().zip(names).enumerate().map(|(at, (row, name))| {
        let state = Cell::from(Span::styled(state_word(row), paint.state(row.state)));
        let since = Cell::from(age_of(row.since, model.now));
        let words = Cell::from(Text::raw(words(row)));
        let cells = match section {
            Section::Running => vec![Cell::from(name), state, since, Cell::from(progress(row)), words],
            Section::Waiting => {
                vec![Cell::from(name), state, since, Cell::from(format!("p{}", row.priority)), words]
            }
            Section::Failed => {
                vec![
                    Cell::from(name),
                    state,
                    since,
                    Cell::from(tries(row)),
                    words.style(paint.state(row.state)),
                ]
            }
            Section::Done => vec![Cell::from(name), state, since, Cell::from(tries(row)), words],
        };
        TableRow::new(cells).style(line_style(focused && window.chosen == Some(at)))
    });
    let third = match section {
        Section::Running => Constraint::Length(u16::try_from(BAR + 12).unwrap_or(22)),
        Section::Waiting | Section::Failed | Section::Done => Constraint::Length(8),
    };
    let widths = [wide, Constraint::Length(12), Constraint::Length(6), third, Constraint::Fill(1)];
    Table::new(rows, widths)
}

fn robot_table<'a>(window: &Window<&'a Robot>, model: &Model, paint: Paint, width: usize) -> Table<'a> {
    let names = window.items.iter().map(|robot| shown_name(&robot.id, model)).collect::<Vec<_>>();
    let wide = name_width(&names, width);
    let focused = model.panels.focus == Panel::Robots;
    let rows = window.items.iter().zip(names).enumerate().map(|(at, (robot, name))| {
        let style = match &*robot.phase {
            "Online" => paint.good(),
            "Offline" => paint.bad(),
            _ => paint.dim(),
        };
        let heard =
            robot.heard.map_or_else(String::new, |heard| format!("heard {} ago", age_of(heard, model.now)));
        let cells = [
            Cell::from(name),
            Cell::from(Span::styled(&*robot.phase, style)),
            Cell::from(format!("{} running", robot.running)),
            Cell::from(heard),
        ];
        TableRow::new(cells).style(line_style(focused && window.chosen == Some(at)))
    });
    Table::new(rows, [wide, Constraint::Length(12), Constraint::Length(14), Constraint::Fill(1)])
}

fn line_style(is_chosen: bool) -> Style {
    if is_chosen { Paint::chosen() } else { Style::new() }
}

fn shown_name(id: &Id, model: &Model) -> String {
    match &model.namespace {
        Some(_) => id.name.to_string(),
        None => format!("{}/{}", id.namespace, id.name),
    }
}

fn name_width(names: &[String], width: usize) -> Constraint {
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    Constraint::Length(u16::try_from(longest.clamp(12, (width * NAMES / 100).max(12))).unwrap_or(u16::MAX))
}

fn words(row: &Row) -> &str {
    match row.state {
        _ if !row.words.is_empty() => &row.words,
        State::Created => "held back until it is submitted",
        State::Ready => "waits for its turn",
        _ => "",
    }
}

fn state_word(row: &Row) -> &'static str {
    if row.stopping { "stopping" } else { row.state.as_str() }
}

fn progress(row: &Row) -> String {
    match (row.completed, row.total) {
        (completed, Some(total)) => bar(completed.unwrap_or(0), total, BAR),
        (Some(completed), None) => format!("{completed} done"),
        (None, None) => String::new(),
    }
}

fn tries(row: &Row) -> String {
    match row.attempt {
        0 => String::new(),
        1 => "1 try".to_owned(),
        more => format!("{more} tries"),
    }
}

fn age_of(time: Timestamp, now: Timestamp) -> String {
    if time == Timestamp::MIN { String::new() } else { age::between(time, now) }
}
