//! What stands over the rest: a question, the help.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::super::paint::Paint;
use super::super::row::Id;

const HELP: &[&str] = &[
    "↑ ↓ j k         move, scroll",
    "PgUp PgDn       a page",
    "g G Home End    first, last",
    "Tab ← →         next panel; in a log next container, sideways",
    "Enter           open a task",
    "l               follow its log",
    "f               in a log: follow its end",
    "c               cancel it, after a question",
    "r               make a new task like it, once it has ended",
    "/               filter: build, app=shop, state=failed",
    "Esc q           back; q quits from the first screen",
    "",
    "Any key closes this.",
];

/// Asks whether a task is to be canceled.
pub fn draw_question(frame: &mut Frame<'_>, area: Rect, id: &Id, paint: Paint) {
    let lines = vec![
        Line::raw(format!("Cancel task {}?", id.name)),
        Line::default(),
        Line::raw("y cancels it, any other key leaves it as it is"),
    ];
    draw(frame, area, " Cancel ", lines, paint);
}

/// Shows the keys.
pub fn draw_help(frame: &mut Frame<'_>, area: Rect, paint: Paint) {
    draw(frame, area, " Keys ", HELP.iter().map(|line| Line::raw(*line)).collect(), paint);
}

/// A box in the middle.
fn draw(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>, paint: Paint) {
    let size = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    let wide = size(lines.iter().map(Line::width).max().unwrap_or(0)).saturating_add(4).min(area.width);
    let high = size(lines.len()).saturating_add(2).min(area.height);
    let place = Rect {
        x: area.x + (area.width - wide) / 2,
        y: area.y + (area.height - high) / 2,
        width: wide,
        height: high,
    };
    let block = Block::bordered()
        .title(Line::styled(title.to_owned(), paint.title()))
        .border_style(paint.focus())
        .padding(ratatui::widgets::Padding::horizontal(1));
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(block), place);
}
