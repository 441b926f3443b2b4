//! The frame around every page.

use maud::{DOCTYPE, Markup, html};

use crate::assets::{SCRIPT_PATH, STYLE_PATH};
use crate::site::Visit;

/// A page without its frame.
pub struct Page {
    /// What it is about.
    pub title: String,
    /// What stays as it is while it is looked at, such as forms.
    pub fixed: Markup,
    /// What is made anew.
    pub live: Markup,
    /// What stays as it is below that.
    pub below: Markup,
}

/// The places there are, with what an address of each begins with.
const PLACES: [(&str, &str); 8] = [
    ("Overview", ""),
    ("Tasks", "tasks"),
    ("Jobs", "jobs"),
    ("Schedules", "schedules"),
    ("Robots", "robots"),
    ("Resources", "resources"),
    ("Sinks", "sinks"),
    ("Submit", "submit"),
];

/// The whole document.
pub fn document(visit: &Visit, page: &Page) -> Markup {
    let here = visit.segments().first().copied().unwrap_or_default().to_owned();
    let query = visit.query.with("", "");
    let live = format!("/ui/live/{}?{query}", visit.path);
    let places = PLACES.iter().filter(|(_, place)| *place != "submit" || visit.may_write());
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(&page.title))
            body {
                a.skip href="#main" { "Skip to content" }
                header {
                    a.brand href="/ui/" { (mark()) "Muster" }
                    nav aria-label="Places" {
                        @for (name, place) in places {
                            a href={ "/ui/" (place) } aria-current=[(here == *place).then_some("page")] { (name) }
                        }
                    }
                    form.who method="post" action="/ui/sign-out" {
                        span title={ "role " (visit.user.role) } { (visit.user.name) " · " (visit.user.role) }
                        button.plain { "Sign out" }
                    }
                }
                main #main {
                    h1 { (page.title) }
                    @if !visit.query.text("said").is_empty() {
                        p.said role="status" { (visit.query.text("said")) }
                    }
                    (page.fixed)
                    div #live data-live=(live) { (page.live) }
                    (page.below)
                }
                footer { span #connection { "" } }
            }
        }
    }
}

/// The head of every document.
pub fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " – Muster" }
            link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M1 14V2h3l4 6 4-6h3v12h-3V7l-4 6-4-6v7z' fill='%232f6fde'/%3E%3C/svg%3E";
            link rel="stylesheet" href=(*STYLE_PATH);
            script type="module" src=(*SCRIPT_PATH) {}
        }
    }
}

fn mark() -> Markup {
    html! {
        svg.mark viewBox="0 0 16 16" aria-hidden="true" { path d="M1 14V2h3l4 6 4-6h3v12h-3V7l-4 6-4-6v7z" {} }
    }
}
