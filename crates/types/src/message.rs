//! A message: what goes to a broker. It is made from a change that was committed, and is the same each time it is made.

use std::sync::Arc;

/// What is told to others about one transition of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The same for the same transition, however often it is sent: a consumer that keeps ids sees each once.
    pub id: String,
    /// Uid of the object. Messages with the same key are delivered in order.
    pub key: Arc<str>,
    /// Routing key of a broker, or last part of a topic; also the type of a CloudEvent.
    pub topic: String,
    /// Media type of the body.
    pub content_type: &'static str,
    /// Attributes that travel beside the body, without any prefix; none if the body holds them.
    pub attributes: Vec<(&'static str, String)>,
    /// What is told.
    pub body: Vec<u8>,
}
