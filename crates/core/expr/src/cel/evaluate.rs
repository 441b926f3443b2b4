//! The value of an expression. What it costs is counted: see [`super::meter`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::meter::{Budget, ENTRY_BYTES, Meter, VALUE_BYTES};
use super::syntax::{Kind, Literal, Loop, LoopKind, Node};
use super::value::Value;
use super::{Mistake, functions, operators};

/// The names an expression may use, and their values.
#[derive(Debug, Clone, Default)]
pub struct Scope<'a> {
    names: Vec<(&'a str, Value<'a>)>,
    budget: Option<&'a Budget>,
}

impl<'a> Scope<'a> {
    /// Adds a name; of two the later one counts.
    #[must_use]
    pub fn with(mut self, name: &'a str, value: Value<'a>) -> Self {
        self.names.push((name, value));
        self
    }

    /// Adds a document.
    #[must_use]
    pub fn with_json(self, name: &'a str, json: &'a Json) -> Self {
        self.with(name, Value::of_json(json))
    }

    /// What expressions over these names cost is taken from this. Without it, each has a budget of its own.
    #[must_use]
    pub const fn within(mut self, budget: &'a Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// What is shared by the expressions over these names, if anything is.
    pub(super) const fn budget(&self) -> Option<&'a Budget> {
        self.budget
    }

    fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.names.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

/// The value of a tree.
pub(super) fn evaluate<'a>(root: &Node, scope: &Scope<'a>, meter: &Meter<'_>) -> Outcome<'a> {
    Evaluation { scope, meter }.node(root, None)
}

/// An element that a macro looks at, and those around it.
struct Element<'f, 'a> {
    name: &'f str,
    value: Value<'a>,
    outer: Option<&'f Element<'f, 'a>>,
}

struct Evaluation<'s, 'a> {
    scope: &'s Scope<'a>,
    meter: &'s Meter<'s>,
}

type Outcome<'a> = Result<Value<'a>, Mistake>;

impl<'a> Evaluation<'_, 'a> {
    fn node(&self, node: &Node, element: Option<&Element<'_, 'a>>) -> Outcome<'a> {
        self.meter.take(node.at, 1)?;
        let at = node.at;
        match &node.kind {
            Kind::Literal(literal) => Ok(value_of(literal)),
            Kind::Name(name) => self.name(at, name, element),
            Kind::List(elements) => {
                self.meter.make(at, elements.len() * VALUE_BYTES)?;
                let elements: Result<Vec<_>, _> = elements.iter().map(|it| self.node(it, element)).collect();
                Ok(Value::List(Arc::new(elements?)))
            }
            Kind::Map(entries) => {
                let mut map = BTreeMap::new();
                for (key, value) in entries {
                    let name = self.node(key, element)?;
                    let name = operators::text_of(key.at, &name)?;
                    self.meter.make(at, ENTRY_BYTES + name.len())?;
                    map.insert(name.into(), self.node(value, element)?);
                }
                Ok(Value::Map(Arc::new(map)))
            }
            Kind::Field(of, field) => {
                let of = self.node(of, element)?;
                operators::field(at, &of, field)?.ok_or_else(|| {
                    Mistake::new(at, format!("there is no field {field:?}; ask with has() first"))
                })
            }
            Kind::Has(of, field) => {
                let of = self.node(of, element)?;
                Ok(Value::Bool(operators::field(at, &of, field)?.is_some()))
            }
            Kind::Index(of, index) => {
                operators::index(self.meter, at, &self.node(of, element)?, &self.node(index, element)?)
            }
            Kind::Not(of) => Ok(Value::Bool(!operators::bool_of(of.at, &self.node(of, element)?)?)),
            Kind::Negate(of) => operators::negate(at, &self.node(of, element)?),
            Kind::Any(parts) => self.decide(parts, element, true),
            Kind::All(parts) => self.decide(parts, element, false),
            Kind::Choice(parts) => {
                let condition = operators::bool_of(parts[0].at, &self.node(&parts[0], element)?)?;
                self.node(&parts[if condition { 1 } else { 2 }], element)
            }
            Kind::Binary(operator, parts) => {
                let (left, right) = (self.node(&parts[0], element)?, self.node(&parts[1], element)?);
                operators::binary(self.meter, at, *operator, &left, &right)
            }
            Kind::Loop(it) => self.each(it, element),
            Kind::Call(call) => {
                let arguments: Result<Vec<_>, _> =
                    call.arguments.iter().map(|argument| self.node(argument, element)).collect();
                functions::call(self.meter, at, call, &arguments?)
            }
        }
    }

    fn name(&self, at: usize, name: &str, element: Option<&Element<'_, 'a>>) -> Outcome<'a> {
        let mut inner = element;
        while let Some(element) = inner {
            if element.name == name {
                return Ok(element.value.clone());
            }
            inner = element.outer;
        }
        let found = self.scope.get(name).cloned();
        found.ok_or_else(|| Mistake::new(at, format!("{name:?} has no value here")))
    }

    /// `||` and `&&`: one part that decides is enough, even if others have no value.
    fn decide(&self, parts: &[Node], element: Option<&Element<'_, 'a>>, decides: bool) -> Outcome<'a> {
        let mut failed = None;
        for part in parts {
            match self.node(part, element).and_then(|value| operators::bool_of(part.at, &value)) {
                Ok(value) if value == decides => return Ok(Value::Bool(decides)),
                Ok(_) => {}
                Err(mistake) if self.meter.is_exceeded() => return Err(mistake),
                Err(mistake) => failed = failed.or(Some(mistake)),
            }
        }
        failed.map_or(Ok(Value::Bool(!decides)), Err)
    }

    fn each(&self, it: &Loop, outer: Option<&Element<'_, 'a>>) -> Outcome<'a> {
        let over = self.node(&it.over, outer)?;
        let elements = operators::elements(self.meter, it.over.at, &over)?;
        let (mut count, mut made, mut failed) = (0_usize, Vec::new(), None);
        for value in elements {
            let kept = value.clone();
            let element = Element { name: &it.name, value, outer };
            let passes = match &it.test {
                None => Ok(true),
                Some(test) => {
                    self.node(test, Some(&element)).and_then(|value| operators::bool_of(test.at, &value))
                }
            };
            let decides_now = match (it.what, &passes) {
                (LoopKind::All, Ok(false)) => Some(false),
                (LoopKind::Exists, Ok(true)) => Some(true),
                _ => None,
            };
            if let Some(decided) = decides_now {
                return Ok(Value::Bool(decided));
            }
            match passes {
                Ok(false) => {}
                Ok(true) => {
                    count += 1;
                    match it.what {
                        LoopKind::Filter => {
                            self.meter.make(it.over.at, VALUE_BYTES)?;
                            made.push(kept);
                        }
                        LoopKind::Map => {
                            if let Some(body) = &it.body {
                                self.meter.make(it.over.at, VALUE_BYTES)?;
                                made.push(self.node(body, Some(&element))?);
                            }
                        }
                        LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne => {}
                    }
                }
                Err(mistake)
                    if matches!(it.what, LoopKind::All | LoopKind::Exists) && !self.meter.is_exceeded() =>
                {
                    failed = failed.or(Some(mistake));
                }
                Err(mistake) => return Err(mistake),
            }
        }
        match (it.what, failed) {
            (_, Some(mistake)) => Err(mistake),
            (LoopKind::All, None) => Ok(Value::Bool(true)),
            (LoopKind::Exists, None) => Ok(Value::Bool(false)),
            (LoopKind::ExistsOne, None) => Ok(Value::Bool(count == 1)),
            (LoopKind::Map | LoopKind::Filter, None) => Ok(Value::List(Arc::new(made))),
        }
    }
}

fn value_of<'a>(literal: &Literal) -> Value<'a> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::Text(text) => Value::text(Arc::clone(text)),
    }
}
