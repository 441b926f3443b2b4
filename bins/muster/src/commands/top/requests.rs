//! What a key asks of the server; the answers are events.

use std::io;

use bytes::Bytes;
use muster_client::client::Form;
use muster_client::tasks::LogOptions;
use muster_client::{Client, ClientError, Resource};
use tokio::sync::mpsc::Sender;

use super::super::following::{LogCopy, LogSink};
use super::super::tracking::name_of;
use super::super::{cancel, explain};
use super::event::{Event, Looked};
use super::row::Id;

/// Lines of a log that are asked for at first.
const TAIL: u64 = 2000;

/// Gets a task in full.
pub async fn look(client: Client, id: Id) -> Event {
    let tasks = Resource::tasks();
    let (task, why) = tokio::join!(
        client.get(&tasks, &id.namespace, &id.name, Form::Objects),
        client.explain_task(&id.namespace, &id.name),
    );
    let why = why.ok().and_then(|document| explain::read(document).ok());
    let looked = task.map(|task| Box::new(Looked { task, why })).map_err(|error| error.to_string());
    Event::Looked(id, looked)
}

/// Asks for the end of a task.
pub async fn ask_cancel(client: Client, id: Id) -> Event {
    let asked = cancel::ask(&client, &id.namespace, &id.name).await;
    Event::Done(match asked {
        Ok(canceled) => Ok(format!("{} {}", id.name, canceled.words())),
        Err(error) => Err(format!("{} was not canceled: {error:#}", id.name)),
    })
}

/// Makes a new task like one that has ended.
pub async fn retry(client: Client, id: Id) -> Event {
    let made: Result<_, ClientError> = client.retry_task(&id.namespace, &id.name).await;
    Event::Done(match made {
        Ok(task) => Ok(format!("{} was made anew as {}", id.name, name_of(&task))),
        Err(error) => Err(format!("{} was not made anew: {error}", id.name)),
    })
}

/// Follows a log to its end.
pub async fn follow_log(
    client: Client,
    id: Id,
    container: Option<String>,
    ticket: u64,
    events: Sender<Event>,
) {
    let options = LogOptions { container, follow: true, tail: Some(TAIL), ..LogOptions::default() };
    let mut copy = LogCopy::new(options, Reader { ticket, events: events.clone() });
    if let Err(error) = copy.run(&client, &id.namespace, &id.name, u32::MAX).await {
        drop(events.send(Event::LogNote(ticket, format!("{error:#}"))).await);
    }
    // Nobody may be there any more.
    drop(events.send(Event::LogEnd(ticket)).await);
}

/// Where a log is looked at.
struct Reader {
    ticket: u64,
    events: Sender<Event>,
}

impl LogSink for Reader {
    async fn put(&mut self, part: Bytes) -> io::Result<()> {
        let sent = self.events.send(Event::LogPart(self.ticket, part.to_vec())).await;
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))
    }

    async fn note(&mut self, words: String) {
        drop(self.events.send(Event::LogNote(self.ticket, words)).await);
    }
}
