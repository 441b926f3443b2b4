//! A consumer as the guide says it should be: it keeps ids, so it sees each message once.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use muster_relay_sinks::address::Address;
use muster_relay_sinks::amqp::Consumer as AmqpConsumer;
use tokio::time::timeout;

/// What was heard.
#[derive(Debug, Default)]
pub struct Heard {
    /// How often each id came.
    pub ids: HashMap<String, u32>,
    /// Of each object the words that came, each once, in order.
    pub words: BTreeMap<String, Vec<String>>,
    /// Messages in all.
    pub messages: usize,
}

impl Heard {
    fn take_in(&mut self, id: &str, topic: &str) {
        self.messages += 1;
        let seen = self.ids.entry(id.to_owned()).or_default();
        *seen += 1;
        if *seen == 1 {
            let object = id.split('/').next().unwrap_or_default();
            let word = topic.rsplit('.').next().unwrap_or_default();
            self.words.entry(object.to_owned()).or_default().push(word.to_owned());
        }
    }

    /// Messages that came before.
    pub fn duplicates(&self) -> usize {
        self.messages - self.ids.len()
    }
}

/// A consumer of everything under `cds.job.*`, which connects again whenever the broker went.
pub struct Consumer {
    heard: Arc<Mutex<Heard>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Consumer {
    /// Its queue is there when this returns.
    pub fn start(url: &str, queue: &str) -> Self {
        let (heard, stop) = (Arc::new(Mutex::new(Heard::default())), Arc::new(AtomicBool::new(false)));
        let address = Address::parse(url).expect("an address");
        let runtime =
            || tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let open = runtime().block_on(open(&address, queue));
        assert!(open.is_some(), "the broker takes a consumer");
        drop(open);
        let (kept, stopped, queue) = (heard.clone(), stop.clone(), queue.to_owned());
        let thread = thread::spawn(move || runtime().block_on(consume(&address, &queue, &kept, &stopped)));
        Self { heard, stop, thread: Some(thread) }
    }

    /// What was heard so far.
    pub fn with<T>(&self, look: impl FnOnce(&Heard) -> T) -> T {
        look(&self.heard.lock().expect("nobody failed"))
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

async fn open(address: &Address, queue: &str) -> Option<AmqpConsumer> {
    AmqpConsumer::open(address, "cdsresponder", queue, &["cds.job.*"], 500).await.ok()
}

async fn consume(address: &Address, queue: &str, heard: &Mutex<Heard>, stop: &AtomicBool) {
    let mut tries = tokio::time::interval(Duration::from_millis(100));
    while !stop.load(Ordering::Relaxed) {
        tries.tick().await;
        let Some(mut consumer) = open(address, queue).await else {
            continue;
        };
        let mut unacknowledged = 0;
        let mut last = 0;
        loop {
            let mut idle = false;
            match timeout(Duration::from_millis(100), consumer.next()).await {
                Ok(Ok(delivery)) => {
                    heard.lock().expect("nobody failed").take_in(&delivery.id, &delivery.topic);
                    (unacknowledged, last) = (unacknowledged + 1, delivery.tag);
                }
                Ok(Err(_)) => break,
                Err(_) if stop.load(Ordering::Relaxed) => return,
                Err(_) if unacknowledged == 0 => continue,
                Err(_) => idle = true,
            }
            if (1..100).contains(&unacknowledged) && !idle {
                continue;
            }
            if consumer.acknowledge(last, true).await.is_err() {
                break;
            }
            unacknowledged = 0;
        }
    }
}
