//! `muster top`: all that happens, on one screen.
//!
//! `model` decides what is shown and what is done; it knows neither server nor terminal. `screen` draws it. Workers (`feed`,
//! `requests`) ask the server and send what they learn as events. This file puts them together.

mod detail;
mod event;
mod feed;
mod filter;
mod history;
mod key;
mod log_view;
mod model;
mod paint;
mod panels;
mod requests;
mod robot;
mod row;
mod rows;
mod screen;
mod terminal;

use std::env;
use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use muster_client::client::{Form, PageRequest, Selectors};
use muster_client::{Client, Resource, Scope};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::MissedTickBehavior;

use self::event::{Effect, Event};
use self::feed::Feed;
use self::model::Model;
use self::paint::Paint;
use self::terminal::Terminal;
use super::session::Session;
use super::signals::Signals;
use crate::cli::{Globals, TopArgs};
use crate::output::age;

/// Shortest time between two pictures.
const FRAME: Duration = Duration::from_millis(100);
/// Time between two looks at the clock.
const CLOCK: Duration = Duration::from_millis(250);
/// Events that may lie about unread.
const EVENTS: usize = 1024;
/// Events that are taken in at once.
const BATCH: usize = 256;

/// Shows the dashboard until the user leaves it.
pub async fn run(globals: &Globals, args: &TopArgs) -> anyhow::Result<ExitCode> {
    require_terminal(globals)?;
    let session = Session::open(globals).await?;
    let namespace = (!args.all_namespaces).then(|| session.namespace().to_owned());
    let selectors = Selectors { labels: args.selector.clone(), fields: None };
    // What cannot work is told before the screen is taken.
    let scope = namespace.as_deref().map_or(Scope::All, Scope::Namespace);
    let page = PageRequest { limit: 1, from: None };
    session.client.list(&Resource::tasks(), scope, &selectors, Form::Metadata, page).await?;

    let (sender, events) = mpsc::channel(EVENTS);
    let client = session.client;
    let mut workers = JoinSet::new();
    let feed = |selectors| Feed::new(client.clone(), namespace.clone(), selectors, sender.clone());
    workers.spawn(feed(selectors).follow_tasks());
    workers.spawn(feed(Selectors::default()).follow_robots());
    let model = Model::new(client.url().to_owned(), namespace.clone(), age::now());
    let signals = Signals::new()?;
    let terminal = Terminal::take(Paint::chosen_by(env::var_os("NO_COLOR").as_deref()))?;
    terminal::read_keys(sender.clone());
    Dashboard { client, model, terminal, workers, log: None, sender }.run(events, signals).await
}

fn require_terminal(globals: &Globals) -> anyhow::Result<()> {
    if !io::stdout().is_terminal() {
        bail!(
            "top draws on a terminal, and standard output is none; `muster watch` prints each change as a line"
        );
    }
    if env::var_os("TERM").is_some_and(|term| term == "dumb") {
        bail!(
            "top cannot draw on a terminal of type dumb; `muster watch | cat` prints each change as a line"
        );
    }
    if globals.log.is_some() && io::stderr().is_terminal() {
        bail!("a log would be written over what top draws; leave --log and MUSTER_LOG out, or add 2>FILE");
    }
    Ok(())
}

struct Dashboard {
    client: Client,
    model: Model,
    terminal: Terminal,
    workers: JoinSet<()>,
    /// Who follows a log.
    log: Option<AbortHandle>,
    sender: Sender<Event>,
}

impl Dashboard {
    async fn run(mut self, mut events: Receiver<Event>, mut signals: Signals) -> anyhow::Result<ExitCode> {
        let mut frames = tokio::time::interval(FRAME);
        frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut clock = tokio::time::interval(CLOCK);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (columns, lines) = self.terminal.size()?;
        self.model.handle(Event::Size(columns, lines));
        let mut batch = Vec::with_capacity(BATCH);
        let mut changed = true;
        loop {
            tokio::select! {
                _ = events.recv_many(&mut batch, BATCH) => {
                    for event in batch.drain(..) {
                        if self.handle(event).is_break() {
                            return Ok(ExitCode::SUCCESS);
                        }
                    }
                    changed = true;
                }
                _ = clock.tick() => {
                    let before = self.model.now;
                    if self.handle(Event::Time(age::now())).is_break() {
                        return Ok(ExitCode::SUCCESS);
                    }
                    // Ages are in seconds.
                    changed |= self.model.now != before;
                }
                _ = frames.tick(), if changed => {
                    self.terminal.draw(&self.model)?;
                    changed = false;
                }
                word = signals.next() => return Ok(ExitCode::from(u8::try_from(word.code()).unwrap_or(1))),
                Some(ended) = self.workers.join_next() => {
                    if let Err(error) = ended
                        && error.is_panic()
                    {
                        bail!("a part of the dashboard broke down; please report what was printed above");
                    }
                }
            }
        }
    }

    fn handle(&mut self, event: Event) -> ControlFlow<()> {
        for effect in self.model.handle(event) {
            self.carry_out(effect)?;
        }
        ControlFlow::Continue(())
    }

    fn carry_out(&mut self, effect: Effect) -> ControlFlow<()> {
        let client = self.client.clone();
        match effect {
            Effect::Quit => return ControlFlow::Break(()),
            Effect::Look(id) => self.ask(requests::look(client, id)),
            Effect::Cancel(id) => self.ask(requests::ask_cancel(client, id)),
            Effect::Retry(id) => self.ask(requests::retry(client, id)),
            Effect::Unfollow => self.unfollow(),
            Effect::Follow { id, container, ticket } => {
                self.unfollow();
                let following = requests::follow_log(client, id, container, ticket, self.sender.clone());
                self.log = Some(self.workers.spawn(following));
            }
        }
        ControlFlow::Continue(())
    }

    /// Sends a request; its answer is an event.
    fn ask(&mut self, request: impl Future<Output = Event> + Send + 'static) {
        let sender = self.sender.clone();
        // Nobody may be there any more when the answer comes.
        self.workers.spawn(async move { drop(sender.send(request.await).await) });
    }

    fn unfollow(&mut self) {
        if let Some(log) = self.log.take() {
            log.abort();
        }
    }
}
