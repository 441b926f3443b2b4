//! Managed resources: how reports become conditions, when a resource is looked at, and what adapters do then.
//!
//! Is: decisions over values (seed 002). A type, a resource, a report and the time come in; a verdict, a new status and
//! what is to be done come out. Is not: a loop, a clock, a store or a client; those are in `muster-engine` and behind
//! the ports.
//!
//! Start here: [`plan::plan_resource`] decides everything about one resource; [`report::accept_report`] takes in what an
//! adapter says, [`root_conditions::fold_conditions`] says what follows from it, [`sentinel::decide_pulse`] when to look.

#![warn(missing_docs)]

pub mod adapter_rules;
pub mod dry_run;
pub mod field_problem;
pub mod inputs;
pub mod outcome;
pub mod plan;
pub mod report;
pub mod report_check;
pub mod root_conditions;
pub mod sentinel;
pub mod task_render;
pub mod type_check;
pub mod type_rules;

pub use adapter_rules::AdapterRules;
pub use field_problem::FieldProblem;
pub use report::{Discard, Verdict, accept_report};
pub use type_check::check_type;
pub use type_rules::TypeRules;
