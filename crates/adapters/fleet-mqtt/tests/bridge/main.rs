//! The bridge between a real broker and a store: it forwards, writes down what robots say of themselves, and decides nothing.

mod bad_input;
mod departures;
mod forwards;
mod yard;
