//! The rules of managed resources, as step tables: what happens on the left, how the resource stands on the right.

mod adapters;
mod conditions;
mod deletion;
mod pulses;
mod reports;
mod stage;
