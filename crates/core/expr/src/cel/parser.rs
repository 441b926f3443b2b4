//! From words to a tree, by recursive descent. Depth is limited, so that no text exhausts the stack.

use regex::RegexBuilder;

use super::Mistake;
use super::lexer::{Token, lex};
use super::syntax::{Call, Kind, Literal, Loop, LoopKind, Node, Operator};

/// Nodes one below the other.
const MAX_DEPTH: usize = 64;
/// Brackets one inside the other, which take more of the stack than nodes.
const MAX_NESTING: usize = 32;
/// Memory a pattern may take, in bytes.
const PATTERN_SIZE: usize = 256 * 1024;
/// Words that cannot be names.
const RESERVED: [&str; 4] = ["in", "true", "false", "null"];

/// Reads a whole expression.
pub fn parse(text: &str) -> Result<Node, Mistake> {
    let mut parser = Parser { tokens: lex(text)?, next: 0, nesting: 0 };
    let node = parser.expression()?;
    match parser.peek() {
        Token::End => Ok(node),
        _ => Err(parser.unexpected("an operator or the end")),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    nesting: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        // The last word is the end, and nothing moves beyond it.
        &self.tokens[self.next.min(self.tokens.len() - 1)].1
    }

    fn at(&self) -> usize {
        self.tokens[self.next.min(self.tokens.len() - 1)].0
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Token::Sign(found) if *found == sign);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, sign: &str) -> Result<(), Mistake> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(&format!("{sign:?}"))) }
    }

    fn unexpected(&self, wanted: &str) -> Mistake {
        let found = match self.peek() {
            Token::End => "the end".to_owned(),
            Token::Name(name) => format!("{name:?}"),
            Token::Sign(sign) => format!("{sign:?}"),
            Token::Int(_) | Token::Double(_) => "a number".to_owned(),
            Token::Text(_) => "a string".to_owned(),
        };
        Mistake::new(self.at(), format!("expected {wanted}, found {found}"))
    }

    fn node(at: usize, below: usize, kind: Kind) -> Result<Node, Mistake> {
        if below >= MAX_DEPTH {
            return Err(Mistake::new(
                at,
                format!("more than {MAX_DEPTH} parts one inside the other; make it simpler"),
            ));
        }
        Ok(Node { at, depth: below + 1, kind })
    }

    /// Everything that recurses goes through here.
    fn expression(&mut self) -> Result<Node, Mistake> {
        if self.nesting >= MAX_NESTING {
            let message = format!("more than {MAX_NESTING} brackets one inside the other; make it simpler");
            return Err(Mistake::new(self.at(), message));
        }
        self.nesting += 1;
        let node = self.choice();
        self.nesting -= 1;
        node
    }

    fn choice(&mut self) -> Result<Node, Mistake> {
        let condition = self.any()?;
        if !self.take("?") {
            return Ok(condition);
        }
        let then = self.any()?;
        self.expect(":")?;
        let otherwise = self.expression()?;
        let parts = [condition, then, otherwise];
        let below = deepest(&parts);
        Self::node(parts[0].at, below, Kind::Choice(Box::new(parts)))
    }

    fn any(&mut self) -> Result<Node, Mistake> {
        self.several("||", Self::all, Kind::Any)
    }

    fn all(&mut self) -> Result<Node, Mistake> {
        self.several("&&", Self::relation, Kind::All)
    }

    fn several(
        &mut self,
        sign: &str,
        part: fn(&mut Self) -> Result<Node, Mistake>,
        kind: fn(Vec<Node>) -> Kind,
    ) -> Result<Node, Mistake> {
        let first = part(self)?;
        let mut parts = vec![first];
        while self.take(sign) {
            parts.push(part(self)?);
        }
        if parts.len() == 1 {
            return parts.pop().ok_or_else(|| self.unexpected("a value"));
        }
        let (at, below) = (parts[0].at, deepest(&parts));
        Self::node(at, below, kind(parts))
    }

    fn relation(&mut self) -> Result<Node, Mistake> {
        const SIGNS: [(&str, Operator); 6] = [
            ("==", Operator::Equal),
            ("!=", Operator::NotEqual),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        let mut left = self.sum()?;
        loop {
            let operator = if matches!(self.peek(), Token::Name(name) if name == "in") {
                self.next += 1;
                Operator::In
            } else if let Some((_, operator)) = SIGNS.iter().find(|(sign, _)| self.take(sign)) {
                *operator
            } else {
                return Ok(left);
            };
            left = Self::binary(operator, left, self.sum()?)?;
        }
    }

    fn sum(&mut self) -> Result<Node, Mistake> {
        let mut left = self.product()?;
        loop {
            let operator = if self.take("+") {
                Operator::Add
            } else if self.take("-") {
                Operator::Subtract
            } else {
                return Ok(left);
            };
            left = Self::binary(operator, left, self.product()?)?;
        }
    }

    fn product(&mut self) -> Result<Node, Mistake> {
        let mut left = self.unary()?;
        loop {
            let operator = if self.take("*") {
                Operator::Multiply
            } else if self.take("/") {
                Operator::Divide
            } else if self.take("%") {
                Operator::Remainder
            } else {
                return Ok(left);
            };
            left = Self::binary(operator, left, self.unary()?)?;
        }
    }

    fn binary(operator: Operator, left: Node, right: Node) -> Result<Node, Mistake> {
        let parts = [left, right];
        let below = deepest(&parts);
        Self::node(parts[0].at, below, Kind::Binary(operator, Box::new(parts)))
    }

    fn unary(&mut self) -> Result<Node, Mistake> {
        let at = self.at();
        let mut signs = Vec::new();
        while let Some(sign) = ["!", "-"].into_iter().find(|sign| self.take(sign)) {
            signs.push(sign);
        }
        let mut node = self.member()?;
        for sign in signs.into_iter().rev() {
            node = match node.kind {
                Kind::Literal(Literal::Int(value)) if sign == "-" => {
                    Self::node(at, 0, Kind::Literal(Literal::Int(-value)))?
                }
                _ if sign == "-" => Self::node(at, node.depth, Kind::Negate(Box::new(node)))?,
                _ => Self::node(at, node.depth, Kind::Not(Box::new(node)))?,
            };
        }
        Ok(node)
    }

    fn member(&mut self) -> Result<Node, Mistake> {
        let mut node = self.primary()?;
        loop {
            let at = self.at();
            if self.take(".") {
                let name = self.name("a field or a function")?;
                node = if self.take("(") {
                    self.method(at, node, name)?
                } else {
                    Self::node(at, node.depth, Kind::Field(Box::new(node), name))?
                };
            } else if self.take("[") {
                let index = self.expression()?;
                self.expect("]")?;
                let below = node.depth.max(index.depth);
                node = Self::node(at, below, Kind::Index(Box::new(node), Box::new(index)))?;
            } else {
                return Ok(node);
            }
        }
    }

    fn name(&mut self, wanted: &str) -> Result<String, Mistake> {
        match self.peek().clone() {
            Token::Name(name) if !RESERVED.contains(&name.as_str()) => {
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.unexpected(wanted)),
        }
    }

    fn primary(&mut self) -> Result<Node, Mistake> {
        let at = self.at();
        let literal = |literal| Self::node(at, 0, Kind::Literal(literal));
        let token = self.peek().clone();
        self.next += 1;
        match token {
            Token::Int(value) => literal(Literal::Int(value)),
            Token::Double(value) => literal(Literal::Double(value)),
            Token::Text(value) => literal(Literal::Text(value.into())),
            Token::Name(name) => match name.as_str() {
                "true" => literal(Literal::Bool(true)),
                "false" => literal(Literal::Bool(false)),
                "null" => literal(Literal::Null),
                "in" => {
                    self.next -= 1;
                    Err(self.unexpected("a value"))
                }
                "has" if self.take("(") => self.has(at),
                _ if self.take("(") => {
                    let arguments = self.list_until(")")?;
                    Self::call(at, name, false, arguments)
                }
                _ => Self::node(at, 0, Kind::Name(name)),
            },
            Token::Sign("(") => {
                let node = self.expression()?;
                self.expect(")")?;
                Ok(node)
            }
            Token::Sign("[") => {
                let elements = self.list_until("]")?;
                let below = deepest(&elements);
                Self::node(at, below, Kind::List(elements))
            }
            Token::Sign("{") => self.map(at),
            Token::Sign(_) | Token::End => {
                self.next -= 1;
                Err(self.unexpected("a value"))
            }
        }
    }

    fn has(&mut self, at: usize) -> Result<Node, Mistake> {
        let argument = self.expression()?;
        self.expect(")")?;
        match argument.kind {
            Kind::Field(of, field) => Self::node(at, of.depth, Kind::Has(of, field)),
            _ => Err(Mistake::new(argument.at, "has() takes a field, as in has(resource.spec.size)")),
        }
    }

    fn list_until(&mut self, end: &str) -> Result<Vec<Node>, Mistake> {
        let mut elements = Vec::new();
        while !self.take(end) {
            elements.push(self.expression()?);
            if !self.take(",") {
                self.expect(end)?;
                break;
            }
        }
        Ok(elements)
    }

    fn map(&mut self, at: usize) -> Result<Node, Mistake> {
        let mut entries = Vec::new();
        while !self.take("}") {
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, self.expression()?));
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        let below = entries.iter().map(|(key, value)| key.depth.max(value.depth)).max().unwrap_or(0);
        Self::node(at, below, Kind::Map(entries))
    }

    fn method(&mut self, at: usize, receiver: Node, name: String) -> Result<Node, Mistake> {
        let what = match name.as_str() {
            "all" => LoopKind::All,
            "exists" => LoopKind::Exists,
            "exists_one" | "existsOne" => LoopKind::ExistsOne,
            "map" => LoopKind::Map,
            "filter" => LoopKind::Filter,
            _ => {
                let mut arguments = vec![receiver];
                arguments.extend(self.list_until(")")?);
                return Self::call(at, name, true, arguments);
            }
        };
        let variable = self.name("the name of an element, as in all(i, i > 0)")?;
        self.expect(",")?;
        let first = self.expression()?;
        let second = if what == LoopKind::Map && self.take(",") { Some(self.expression()?) } else { None };
        self.expect(")")?;
        let (test, body) = match (what, second) {
            (LoopKind::Map, Some(body)) => (Some(first), Some(body)),
            (LoopKind::Map, None) => (None, Some(first)),
            _ => (Some(first), None),
        };
        let parts = [Some(&receiver), test.as_ref(), body.as_ref()];
        let below = parts.into_iter().flatten().map(|node| node.depth).max().unwrap_or(0);
        let kind = Kind::Loop(Box::new(Loop { what, over: receiver, name: variable, test, body }));
        Self::node(at, below, kind)
    }

    fn call(at: usize, name: String, is_method: bool, arguments: Vec<Node>) -> Result<Node, Mistake> {
        let below = deepest(&arguments);
        let pattern = match arguments.get(1).map(|node| &node.kind) {
            Some(Kind::Literal(Literal::Text(pattern))) if name == "matches" => {
                let built = RegexBuilder::new(pattern).size_limit(PATTERN_SIZE).build();
                Some(
                    built
                        .map_err(|error| Mistake::new(at, format!("the pattern cannot be read: {error}")))?,
                )
            }
            _ => None,
        };
        Self::node(at, below, Kind::Call(Call { name, is_method, arguments, pattern }))
    }
}

fn deepest(nodes: &[Node]) -> usize {
    nodes.iter().map(|node| node.depth).max().unwrap_or(0)
}
