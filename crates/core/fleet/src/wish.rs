//! What a task asks of a robot, ready to be held against many of them.

use std::cmp::Ordering;
use std::sync::Arc;

use muster_types::Quantity;
use muster_types::placement::{Constraint, Demand, Operator};
use regex::{Regex, RegexBuilder};

use crate::robot_view::RobotView;
use crate::version::Allowed;

/// The most memory a regular expression may take once it is compiled.
const MAX_REGEX: usize = 1 << 20;
/// What constraints can look at.
const ATTRIBUTES: [&str; 8] = [
    "robot.id",
    "device.hostname",
    "device.platform",
    "device.arch",
    "device.kernel",
    "device.agentVersion",
    "device.cpus",
    "device.memory",
];

/// A demand with its constraints compiled.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) demand: Arc<Demand>,
    tests: Vec<Test>,
}

#[derive(Debug)]
struct Test {
    constraint: Constraint,
    pattern: Option<Regex>,
    versions: Option<Allowed>,
}

impl Wish {
    pub(crate) fn new(demand: &Arc<Demand>) -> Self {
        let tests = demand.constraints.iter().map(|constraint| Test {
            pattern: compile(constraint).filter(|_| constraint.operator == Operator::Regexp),
            versions: Allowed::parse(&constraint.value).filter(|_| constraint.operator == Operator::Version),
            constraint: constraint.clone(),
        });
        Self { demand: demand.clone(), tests: tests.collect() }
    }

    /// Why this robot is not one it may run on, however empty; `None` if it is.
    pub(crate) fn mismatch(&self, robot: &RobotView) -> Option<String> {
        let demand = &self.demand;
        let (_, name) = robot.names();
        if !demand.target.is_empty() && demand.target != name {
            return Some(format!("the target is {}", demand.target));
        }
        let labels = &robot.traits.labels;
        let lacking = demand.selector.iter().find(|(label, value)| labels.get(*label) != Some(*value));
        if let Some((label, value)) = lacking {
            return Some(format!("label {label} is not {value}"));
        }
        let broken = self.tests.iter().find(|test| !test.holds(robot));
        broken.map(|test| format!("{} does not hold", test.constraint))
    }
}

impl Test {
    fn holds(&self, robot: &RobotView) -> bool {
        let wanted = &self.constraint.value;
        let Some(found) = robot.attribute(&self.constraint.attribute) else {
            return self.constraint.operator == Operator::NotEqual;
        };
        match self.constraint.operator {
            Operator::Equal => compare(&found, wanted).is_eq(),
            Operator::NotEqual => compare(&found, wanted).is_ne(),
            Operator::Less => compare(&found, wanted).is_lt(),
            Operator::LessOrEqual => compare(&found, wanted).is_le(),
            Operator::Greater => compare(&found, wanted).is_gt(),
            Operator::GreaterOrEqual => compare(&found, wanted).is_ge(),
            Operator::Regexp => self.pattern.as_ref().is_some_and(|pattern| pattern.is_match(&found)),
            Operator::Version => self.versions.as_ref().is_some_and(|versions| versions.allows(&found)),
            Operator::SetContains => {
                let there: Vec<&str> = found.split(',').map(str::trim).collect();
                wanted.split(',').all(|one| there.contains(&one.trim()))
            }
        }
    }
}

/// As quantities if both are, else as text.
fn compare(found: &str, wanted: &str) -> Ordering {
    match (found.parse::<Quantity>(), wanted.parse::<Quantity>()) {
        (Ok(found), Ok(wanted)) => found.milli().cmp(&wanted.milli()),
        _ => found.cmp(wanted),
    }
}

fn compile(constraint: &Constraint) -> Option<Regex> {
    RegexBuilder::new(&constraint.value).size_limit(MAX_REGEX).build().ok()
}

/// What is wrong with a constraint; `None` if nothing is.
pub fn describe_bad_constraint(constraint: &Constraint) -> Option<String> {
    let attribute = constraint.attribute.as_str();
    let is_label = attribute.strip_prefix("label.").is_some_and(|label| !label.is_empty());
    if !is_label && !ATTRIBUTES.contains(&attribute) {
        return Some(format!("no such attribute; use label.NAME or one of {}", ATTRIBUTES.join(", ")));
    }
    match constraint.operator {
        Operator::Regexp if compile(constraint).is_none() => {
            Some("the value is not a regular expression, or one that is too large".to_owned())
        }
        Operator::Version if Allowed::parse(&constraint.value).is_none() => {
            Some("the value is not a version; write for example \">= 1.2, < 2\"".to_owned())
        }
        _ => None,
    }
}
