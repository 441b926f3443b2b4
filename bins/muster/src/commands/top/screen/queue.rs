//! The queue by state, and how it was.

use muster_types::State;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};

use super::super::history::Moment;
use super::super::model::Model;
use super::super::paint::Paint;

/// States as they stand, line by line.
const LINES: [&[State]; 4] = [
    &[State::Ready, State::Running, State::Succeeded],
    &[State::Postponed, State::Pending, State::Failed],
    &[State::QuotaBlocked, State::Created, State::Canceled],
    &[],
];
/// Width of a state and its number.
const CELL: usize = 21;
/// Width of the name and number before a plot.
const LABEL: u16 = 19;
/// Height of a body from which there is room for plots.
const ROOMY: u16 = 18;

/// Lines that this takes of a body.
pub fn height(body: u16) -> u16 {
    if body < ROOMY { 3 } else { 4 }
}

/// Draws it.
pub fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, paint: Paint) {
    let states = u16::try_from(3 * CELL).unwrap_or(u16::MAX);
    let [left, right] = Layout::horizontal([Constraint::Length(states), Constraint::Min(0)]).areas(area);
    let mut lines: Vec<Line<'_>> = LINES.iter().map(|states| line(states, model, paint)).collect();
    if let Some(last) = lines.last_mut() {
        *last = filter_line(model, paint);
    }
    frame.render_widget(Paragraph::new(lines), left);
    if right.width > LABEL + 8 {
        draw_plots(frame, right, model, paint);
    }
}

fn line<'a>(states: &[State], model: &Model, paint: Paint) -> Line<'a> {
    let cells = states.iter().flat_map(|state| {
        let count = model.rows.count(*state).to_string();
        let blanks = CELL.saturating_sub(state.as_str().len() + count.len() + 4);
        let style = if count == "0" { paint.dim() } else { paint.state(*state) };
        [
            Span::styled(format!(" {}", state.as_str()), style),
            Span::raw(format!("{}{count}   ", " ".repeat(blanks))),
        ]
    });
    Line::from(cells.collect::<Vec<_>>())
}

fn filter_line<'a>(model: &Model, paint: Paint) -> Line<'a> {
    if model.filter.is_empty() {
        return Line::default();
    }
    Line::styled(format!(" only {}", model.filter.text()), paint.focus())
}

/// One line of history.
struct Plot {
    name: &'static str,
    of: fn(&Moment) -> u64,
    style: Style,
}

fn draw_plots(frame: &mut Frame<'_>, area: Rect, model: &Model, paint: Paint) {
    let plot = |name, of, style| Plot { name, of, style };
    let plots = [
        plot("waiting", |moment| moment.waiting, paint.state(State::Ready)),
        plot("running", |moment| moment.running, paint.state(State::Running)),
        plot("ended/s", |moment| moment.ended, Style::new()),
        plot("failed/s", |moment| moment.failed, paint.state(State::Failed)),
    ];
    let places = Layout::vertical([Constraint::Length(1); 4]).split(area);
    for (Plot { name, of, style }, place) in plots.into_iter().zip(places.iter()) {
        let [label, plot] = Layout::horizontal([Constraint::Length(LABEL), Constraint::Min(1)]).areas(*place);
        let values = model.history.latest(usize::from(plot.width), of);
        let latest = values.last().copied().unwrap_or(0);
        frame.render_widget(Paragraph::new(format!("{name:<8} {latest:>8} ")), label);
        // The plot stands at the right, where it is now.
        let missing = usize::from(plot.width).saturating_sub(values.len());
        let bars: Vec<Option<u64>> =
            std::iter::repeat_n(None, missing).chain(values.into_iter().map(Some)).collect();
        frame.render_widget(Sparkline::default().data(bars).absent_value_symbol(" ").style(style), plot);
    }
}
