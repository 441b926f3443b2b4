//! Robots, end to end: real agents as processes, through the embedded broker and through a real Mosquitto, with kills and cuts.

mod access;
mod artifacts;
mod cut;
mod data;
mod dialects;
mod guide;
mod images;
mod jobs;
mod kills;
mod real_broker_postgres;
mod world;

/// Makes a test of a scenario for each broker.
macro_rules! on_both_brokers {
    ($($name:ident),+ $(,)?) => {
        mod embedded {
            $(#[test] fn $name() { super::$name($crate::world::Kind::Embedded); })+
        }
        mod real_broker {
            $(#[test] fn $name() { super::$name($crate::world::Kind::Mosquitto); })+
        }
    };
}
pub(crate) use on_both_brokers;
