//! What pages have in common: the frame, words for states, times, tables, pictures.

pub mod dag;
pub mod frame;
pub mod parts;
pub mod plot;
