//! Names and values of a query or a form, in order.

/// What a query or a form says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Takes it apart. What is not UTF-8 is replaced.
    pub fn parse(text: &[u8]) -> Self {
        Self(form_urlencoded::parse(text).into_owned().collect())
    }

    /// The first value of a name; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.trim()).unwrap_or_default()
    }

    /// All values of a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.trim())
    }

    /// All names with their values.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.trim()))
    }

    /// A number, if it is one.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.text(name).parse().ok()
    }

    /// The same with one value changed; an empty one is left out.
    pub fn with(&self, name: &str, value: &str) -> String {
        let mut made = form_urlencoded::Serializer::new(String::new());
        let others = self.0.iter().filter(|(known, value)| known != name && !value.trim().is_empty());
        for (known, value) in others {
            made.append_pair(known, value);
        }
        if !value.is_empty() {
            made.append_pair(name, value);
        }
        made.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_and_changed() {
        let query = Query::parse(b"state=Failed&state=Running&text=a%20b&page=3&empty=");
        assert_eq!(query.all("state").collect::<Vec<_>>(), ["Failed", "Running"]);
        assert_eq!((query.text("text"), query.number("page"), query.text("nothing")), ("a b", Some(3), ""));
        assert_eq!(query.with("page", "4"), "state=Failed&state=Running&text=a+b&page=4");
        assert_eq!(query.with("state", ""), "text=a+b&page=3");
    }
}
