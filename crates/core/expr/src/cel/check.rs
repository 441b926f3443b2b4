//! What type an expression has, as far as it can be told before it is evaluated.
//!
//! Documents are of any type, so this finds what is wrong with the text itself: unknown names and functions, wrong numbers
//! of arguments, operators between values that can never go together, and results of the wrong type.

use std::fmt;

use super::Mistake;
use super::functions::{self, Function};
use super::syntax::{Call, Kind, Literal, Loop, LoopKind, Node, Operator};

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Not known, or any will do.
    Any,
    /// Nothing.
    Null,
    /// True or false.
    Bool,
    /// A whole number.
    Int,
    /// A number with a fraction.
    Double,
    /// A text.
    Text,
    /// A list.
    List,
    /// A map.
    Map,
    /// An instant.
    Timestamp,
    /// A length of time.
    Duration,
}

impl Type {
    /// True if a value of this type may be one of that.
    pub fn fits(self, wanted: Self) -> bool {
        self == wanted || self == Self::Any || wanted == Self::Any
    }

    /// True if the two can be compared: numbers go together.
    fn compares_with(self, other: Self) -> bool {
        self.fits(other) || (self.is_number() && other.is_number())
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::Double)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "dyn",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Double => "double",
            Self::Text => "string",
            Self::List => "list",
            Self::Map => "map",
            Self::Timestamp => "timestamp",
            Self::Duration => "duration",
        })
    }
}

/// The type of an expression over these names.
pub fn check(root: &Node, names: &[(&str, Type)]) -> Result<Type, Mistake> {
    let names = names.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
    Checker { names }.node(root)
}

struct Checker {
    /// Those known, the innermost last.
    names: Vec<(String, Type)>,
}

impl Checker {
    fn node(&mut self, node: &Node) -> Result<Type, Mistake> {
        match &node.kind {
            Kind::Literal(literal) => Ok(match literal {
                Literal::Null => Type::Null,
                Literal::Bool(_) => Type::Bool,
                Literal::Int(_) => Type::Int,
                Literal::Double(_) => Type::Double,
                Literal::Text(_) => Type::Text,
            }),
            Kind::Name(name) => self.name(node, name),
            Kind::List(elements) => {
                for element in elements {
                    self.node(element)?;
                }
                Ok(Type::List)
            }
            Kind::Map(entries) => {
                for (key, value) in entries {
                    self.wants(key, Type::Text, "the key of a map")?;
                    self.node(value)?;
                }
                Ok(Type::Map)
            }
            Kind::Field(of, _) => {
                self.wants(of, Type::Map, "what has fields")?;
                Ok(Type::Any)
            }
            Kind::Has(of, _) => {
                self.wants(of, Type::Map, "what has fields")?;
                Ok(Type::Bool)
            }
            Kind::Index(of, index) => self.index(of, index),
            Kind::Not(of) => {
                self.wants(of, Type::Bool, "what is negated")?;
                Ok(Type::Bool)
            }
            Kind::Negate(of) => match self.node(of)? {
                found @ (Type::Int | Type::Double | Type::Duration | Type::Any) => Ok(found),
                found => Err(Mistake::new(of.at, format!("{found} has no negative"))),
            },
            Kind::Any(parts) | Kind::All(parts) => {
                for part in parts {
                    self.wants(part, Type::Bool, "a part of && or ||")?;
                }
                Ok(Type::Bool)
            }
            Kind::Choice(parts) => {
                self.wants(&parts[0], Type::Bool, "the condition of ? :")?;
                let (then, otherwise) = (self.node(&parts[1])?, self.node(&parts[2])?);
                Ok(if then == otherwise { then } else { Type::Any })
            }
            Kind::Binary(operator, parts) => self.binary(*operator, parts),
            Kind::Loop(it) => self.each(it),
            Kind::Call(call) => self.call(node, call),
        }
    }

    fn wants(&mut self, node: &Node, wanted: Type, what: &str) -> Result<(), Mistake> {
        let found = self.node(node)?;
        if found.fits(wanted) {
            return Ok(());
        }
        Err(Mistake::new(node.at, format!("{what} must be {wanted}, not {found}")))
    }

    fn name(&self, node: &Node, name: &str) -> Result<Type, Mistake> {
        if let Some((_, found)) = self.names.iter().rev().find(|(known, _)| known == name) {
            return Ok(*found);
        }
        let known = self.names.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
        Err(Mistake::new(node.at, format!("{name:?} is not known here; known are {known}")))
    }

    fn index(&mut self, of: &Node, index: &Node) -> Result<Type, Mistake> {
        let (found, by) = (self.node(of)?, self.node(index)?);
        let wanted = match found {
            Type::List => Type::Int,
            Type::Map => Type::Text,
            Type::Any => return Ok(Type::Any),
            _ => return Err(Mistake::new(of.at, format!("{found} has no elements"))),
        };
        if by.fits(wanted) {
            return Ok(Type::Any);
        }
        Err(Mistake::new(index.at, format!("the index of {found} must be {wanted}, not {by}")))
    }

    fn binary(&mut self, operator: Operator, parts: &[Node; 2]) -> Result<Type, Mistake> {
        use Type::{Any, Bool, Double, Duration, Int, List, Map, Text, Timestamp};
        let (left, right) = (self.node(&parts[0])?, self.node(&parts[1])?);
        let result = match operator {
            Operator::Equal | Operator::NotEqual => left.compares_with(right).then_some(Bool).or_else(|| {
                // Whether something is null may always be asked.
                (left == Type::Null || right == Type::Null).then_some(Bool)
            }),
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                let has_order = |it| !matches!(it, List | Map | Type::Null);
                (left.compares_with(right) && has_order(left) && has_order(right)).then_some(Bool)
            }
            Operator::In => match right {
                List | Any => Some(Bool),
                Map => left.fits(Text).then_some(Bool),
                _ => None,
            },
            Operator::Add => match (left, right) {
                (Any, _) | (_, Any) => Some(Any),
                (Timestamp, Duration) | (Duration, Timestamp) => Some(Timestamp),
                (Text, Text) | (List, List) | (Duration, Duration) | (Int, Int) => Some(left),
                _ => (left.is_number() && right.is_number()).then_some(Double),
            },
            Operator::Subtract => match (left, right) {
                (Any, _) | (_, Any) => Some(Any),
                (Timestamp, Timestamp) | (Duration, Duration) => Some(Duration),
                (Timestamp, Duration) => Some(Timestamp),
                (Int, Int) => Some(Int),
                _ => (left.is_number() && right.is_number()).then_some(Double),
            },
            Operator::Multiply | Operator::Divide => match (left, right) {
                (Any, _) | (_, Any) => Some(Any),
                (Int, Int) => Some(Int),
                _ => (left.is_number() && right.is_number()).then_some(Double),
            },
            Operator::Remainder => (left.fits(Int) && right.fits(Int)).then_some(Int),
        };
        result.ok_or_else(|| {
            let message = format!("{left} {} {right} has no meaning", operator.as_str());
            Mistake::new(parts[0].at, message)
        })
    }

    fn each(&mut self, it: &Loop) -> Result<Type, Mistake> {
        let found = self.node(&it.over)?;
        if !found.fits(Type::List) && !found.fits(Type::Map) {
            return Err(Mistake::new(it.over.at, format!("{found} has no elements")));
        }
        let element = if found == Type::Map { Type::Text } else { Type::Any };
        self.names.push((it.name.clone(), element));
        let outcome = self.inside(it);
        self.names.pop();
        outcome?;
        Ok(match it.what {
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne => Type::Bool,
            LoopKind::Map | LoopKind::Filter => Type::List,
        })
    }

    fn inside(&mut self, it: &Loop) -> Result<(), Mistake> {
        if let Some(test) = &it.test {
            self.wants(test, Type::Bool, "the test of an element")?;
        }
        if let Some(body) = &it.body {
            self.node(body)?;
        }
        Ok(())
    }

    fn call(&mut self, node: &Node, call: &Call) -> Result<Type, Mistake> {
        let Some(function) = functions::find(&call.name, call.is_method) else {
            let known = functions::names(call.is_method).join(", ");
            return Err(Mistake::new(
                node.at,
                format!("there is no function {:?}; there are {known}", call.name),
            ));
        };
        let Function { takes, gives, .. } = function;
        if call.arguments.len() < function.least || call.arguments.len() > takes.len() {
            let (less, given) = (usize::from(call.is_method), call.arguments.len());
            let message = format!(
                "{}() takes {} arguments, not {}",
                call.name,
                takes.len() - less,
                given - less.min(given)
            );
            return Err(Mistake::new(node.at, message));
        }
        for (argument, wanted) in call.arguments.iter().zip(*takes) {
            self.wants(argument, *wanted, &format!("an argument of {}()", call.name))?;
        }
        Ok(*gives)
    }
}
