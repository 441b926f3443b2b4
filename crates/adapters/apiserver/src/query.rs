//! Query parameters by name, for paths that have their own.

use std::borrow::Cow;

use crate::options::{boolean, number, refuse};
use crate::refusal::Refusal;
use crate::target::percent_decode;

/// The parameters of a query, in order. Empty ones are as good as absent.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, Option<String>)>);

impl Query {
    /// Takes a query apart. Text that cannot be read is refused when it is asked for.
    pub fn parse(query: &str) -> Self {
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (name.to_owned(), percent_decode(&value.replace('+', " ")).map(Cow::into_owned))
        });
        Self(pairs.collect())
    }

    /// The text of a parameter; of several the last.
    pub fn text(&self, name: &str) -> Result<Option<&str>, Refusal> {
        match self.0.iter().rev().find(|(known, _)| known == name) {
            None => Ok(None),
            Some((_, None)) => Err(refuse(name, "is not valid percent-encoded text")),
            Some((_, Some(value))) => Ok(Some(value.as_str()).filter(|value| !value.is_empty())),
        }
    }

    /// A parameter that is a number.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        self.text(name)?.map(|value| number(name, value)).transpose()
    }

    /// A parameter that is true or false; false if it is absent.
    pub fn flag(&self, name: &str) -> Result<bool, Refusal> {
        self.text(name)?.map_or(Ok(false), |value| boolean(name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_counts_and_empty_is_absent() {
        let query = Query::parse("a=1&a=2%20x&b=&c=true&d=%zz&e");
        assert_eq!(query.text("a").unwrap(), Some("2 x"));
        assert_eq!(query.text("b").unwrap(), None);
        assert!(query.flag("c").unwrap());
        assert!(query.text("d").is_err());
        assert_eq!(query.text("e").unwrap(), None);
        assert!(query.number::<u32>("a").is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_query_panics(query in ".*", name in "[a-z]") {
            drop(Query::parse(&query).text(&name));
        }
    }
}
