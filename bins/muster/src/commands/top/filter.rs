//! Which tasks are shown: words about name, label and state, all of which must fit.

use muster_types::State;

use super::row::Row;

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    text: String,
    words: Vec<Word>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Word {
    /// Part of the name or of a label, or a state.
    Any(String),
    /// Part of the name.
    Name(String),
    /// The beginning of a state.
    State(String),
    /// A whole label, `key=value`.
    Label(String),
}

impl Filter {
    /// Reads words with blanks between: `build`, `app=shop`, `state=failed`, `name=x`.
    pub fn parse(text: &str) -> Self {
        let words = text.split_whitespace().map(|word| match word.split_once('=') {
            None => Word::Any(word.to_owned()),
            Some(("name", part)) => Word::Name(part.to_owned()),
            Some(("state", part)) => Word::State(part.to_owned()),
            Some(_) => Word::Label(word.to_owned()),
        });
        Self { text: text.trim().to_owned(), words: words.collect() }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if everything fits.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// True if a task is to be shown.
    pub fn fits(&self, row: &Row) -> bool {
        self.words.iter().all(|word| match word {
            Word::Any(part) => {
                holds(&row.id.name, part)
                    || row.state.as_str().eq_ignore_ascii_case(part)
                    || holds(&row.labels, part)
            }
            Word::Name(part) => holds(&row.id.name, part),
            Word::State(part) => begins(row.state, part),
            Word::Label(whole) => row.labels.split(' ').any(|label| label == whole),
        })
    }

    /// True if a name alone is to be shown, of things that have nothing else.
    pub fn fits_name(&self, name: &str) -> bool {
        self.words.iter().all(|word| match word {
            Word::Any(part) | Word::Name(part) => holds(name, part),
            Word::State(_) | Word::Label(_) => true,
        })
    }
}

fn begins(state: State, part: &str) -> bool {
    state.as_str().get(..part.len()).is_some_and(|start| start.eq_ignore_ascii_case(part))
}

/// True if a text holds a part; large and small letters are the same.
fn holds(text: &str, part: &str) -> bool {
    if part.is_empty() {
        return true;
    }
    text.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::row;
    use super::*;

    fn fits(filter: &str) -> bool {
        let mut row = row("build-web", State::QuotaBlocked, 0);
        row.labels = "app=shop tier=Web".into();
        Filter::parse(filter).fits(&row)
    }

    #[test]
    fn a_word_is_part_of_the_name_or_of_a_label_or_a_whole_state() {
        assert!(fits("") && fits("uild-w") && fits("BUILD") && fits("shop") && fits("quotablocked"));
        assert!(!fits("quota") && !fits("failed"));
    }

    #[test]
    fn a_word_with_a_sign_is_about_one_thing() {
        assert!(fits("app=shop") && fits("state=quota") && fits("name=web"));
        assert!(!fits("app=sho") && !fits("state=ready") && !fits("name=shop"));
    }

    #[test]
    fn all_words_must_fit() {
        assert!(fits(" build  app=shop "));
        assert!(!fits("build app=bank"));
        assert_eq!(Filter::parse(" a  b ").text(), "a  b");
    }
}
