//! The screens for reading: one task, one log.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph};

use super::super::detail::Tone;
use super::super::log_view::LogView;
use super::super::model::{Model, TaskView};
use super::super::paint::Paint;

/// Draws a task in full.
pub fn draw_task(frame: &mut Frame<'_>, area: Rect, model: &Model, task: &TaskView, paint: Paint) {
    let title = format!(" Task {} ", task.id.name);
    let mut lines: Vec<Line<'_>> = Vec::new();
    if let Some(words) = &task.trouble {
        lines.push(Line::styled(words.as_str(), paint.bad()));
    } else if task.seen.is_none() {
        lines.push(Line::styled("reading…", paint.dim()));
    }
    let all = model.task_lines();
    let top = task.top.min(all.len().saturating_sub(model.page()));
    lines.extend(all.into_iter().skip(top).map(|line| {
        let style = match line.tone {
            Tone::Title => paint.title(),
            Tone::Text => Style::new(),
            Tone::Bad => paint.bad(),
        };
        Line::styled(line.text, style)
    }));
    frame.render_widget(Paragraph::new(lines).block(titled(title, paint)), area);
}

/// Draws a log.
pub fn draw_log(frame: &mut Frame<'_>, area: Rect, log: &LogView, paint: Paint) {
    let place = match log.containers.len() {
        0 | 1 => String::new(),
        count => format!(", container {} of {count}: {}", place_of(log), log.container_name()),
    };
    let how = match (log.ended, log.is_following()) {
        (true, _) => "ended",
        (false, true) => "following",
        (false, false) => "stopped, f follows",
    };
    let title = format!(" Log of {}{place} ({how}) ", log.id.name);
    let block = titled(title, paint);
    let height = usize::from(block.inner(area).height);
    let lines: Vec<Line<'_>> = if log.is_empty() {
        let words = if log.ended { "it wrote nothing" } else { "nothing yet; what it writes comes here" };
        vec![Line::styled(words, paint.dim())]
    } else {
        let visible = log.visible(height).into_iter();
        visible
            .map(|line| {
                let text: String = line.text.chars().skip(log.shift).collect();
                if line.is_note { Line::styled(format!("-- {text}"), paint.focus()) } else { Line::raw(text) }
            })
            .collect()
    };
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn place_of(log: &LogView) -> usize {
    let name = log.container_name();
    log.containers.iter().position(|known| known == name).map_or(1, |at| at + 1)
}

fn titled<'a>(title: String, paint: Paint) -> Block<'a> {
    Block::new().borders(Borders::TOP).border_style(paint.dim()).title(Line::styled(title, paint.title()))
}
