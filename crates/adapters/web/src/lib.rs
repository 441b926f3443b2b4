//! The console: what Muster does, in a browser.
//!
//! Is: pages rendered here from the store's memory, made anew while they are looked at, and the actions behind their
//! buttons, which are requests to the API like anybody's.
//! Is not: a second API. Whatever changes something goes through [`muster_ports::pages::FrontDoor`] with the token
//! of whoever looks, so access, checks and words are the same everywhere.
//!
//! Start here: [`console::Console`] is asked by the API server for everything under `/ui`.

mod actions;
mod asking;
mod assets;
pub mod console;
mod entry;
mod filter;
mod html;
mod index;
mod live;
mod pages;
mod query;
mod reply;
mod samples;
mod session;
mod site;
