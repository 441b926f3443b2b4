//! Drawing: what the model holds, as text on a terminal. Nothing is changed here.

mod lists;
mod popup;
mod queue;
mod reading;
#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::model::{Asking, Link, Model};
use super::paint::Paint;

/// Columns and lines without which nothing can be shown.
const LEAST: (u16, u16) = (40, 10);

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, model: &Model, paint: Paint) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let (width, height) = LEAST;
        let words = format!("too small: {}x{}, needs {width}x{height}", area.width, area.height);
        frame.render_widget(Paragraph::new(words), area);
        return;
    }
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]).areas(area);
    draw_head(frame, head, model, paint);
    match (&model.log, &model.task) {
        (Some(log), _) => reading::draw_log(frame, body, log, paint),
        (None, Some(task)) => reading::draw_task(frame, body, model, task, paint),
        (None, None) => draw_lists(frame, body, model, paint),
    }
    draw_foot(frame, foot, model, paint);
    match &model.asking {
        Asking::Cancel(id) => popup::draw_question(frame, area, id, paint),
        Asking::Help => popup::draw_help(frame, area, paint),
        Asking::Nothing | Asking::Filter(_) => {}
    }
}

fn draw_lists(frame: &mut Frame<'_>, area: Rect, model: &Model, paint: Paint) {
    let [queue, lists] =
        Layout::vertical([Constraint::Length(queue::height(area.height)), Constraint::Min(1)]).areas(area);
    queue::draw(frame, queue, model, paint);
    lists::draw(frame, lists, model, paint);
}

/// Who is asked, and whether it answers.
fn draw_head(frame: &mut Frame<'_>, area: Rect, model: &Model, paint: Paint) {
    let whose = match &model.namespace {
        Some(namespace) => format!("namespace {namespace}"),
        None => "all namespaces".to_owned(),
    };
    let answers = match &model.link {
        Link::Listing => Span::styled("reading…", paint.focus()),
        Link::Live => Span::styled("live", paint.good()),
        Link::Lost(_) => Span::styled("LOST, trying again", paint.bad()),
    };
    let line = Line::from(vec![
        Span::styled("muster top", paint.title()),
        Span::raw(format!("  {}  {whose}  ", model.server)),
        answers,
    ]);
    frame.render_widget(Paragraph::new(line), area);
}

/// A message, what is typed, or the keys.
fn draw_foot(frame: &mut Frame<'_>, area: Rect, model: &Model, paint: Paint) {
    let line = match (&model.asking, &model.notice, &model.link) {
        (Asking::Filter(text), _, _) => Line::from(vec![
            Span::styled("/", paint.focus()),
            Span::raw(text.as_str()),
            Span::styled("█", paint.focus()),
            Span::styled(
                "  name, label, app=shop, state=failed; Enter keeps it, Esc removes it",
                paint.dim(),
            ),
        ]),
        (_, Some(notice), _) => {
            let style = if notice.is_bad { paint.bad() } else { paint.good() };
            Line::styled(notice.words.as_str(), style)
        }
        (_, None, Link::Lost(words)) => Line::styled(words.as_str(), paint.bad()),
        (_, None, _) => Line::styled(keys(model), paint.dim()),
    };
    frame.render_widget(Paragraph::new(line), area);
}

fn keys(model: &Model) -> &'static str {
    match (&model.log, &model.task) {
        (Some(_), _) => {
            "j/k scroll  f follow  Tab container  ←/→ sideways  c cancel  r retry  ? help  Esc back"
        }
        (None, Some(_)) => "j/k scroll  l log  c cancel  r retry  ? help  Esc back",
        (None, None) => "j/k move  Tab panel  Enter open  l log  c cancel  r retry  / filter  ? help  q quit",
    }
}
