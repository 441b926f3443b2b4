//! The console, in a real browser, on a real server that runs real tasks.

mod browser_pages;
mod browser_safety;
mod pictures;
mod world;
