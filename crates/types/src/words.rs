//! Enums that are words on the wire: one list gives the variants, their spelling and their schema.

use thiserror::Error;

/// A text that is none of the words of an enum.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown word, expected one of {expected}")]
pub struct UnknownWord {
    /// The words there are, separated by commas.
    pub expected: String,
}

impl UnknownWord {
    pub(crate) fn new<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        Self { expected: words.collect::<Vec<_>>().join(", ") }
    }
}

/// Declares an enum of words with `ALL`, `as_str`, `Display`, `FromStr`, serde and a schema.
macro_rules! words {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$attribute])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        pub enum $name {
            $($(#[$about])* #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// Every word, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word as it is written in JSON.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::words::UnknownWord::new(Self::ALL.iter().map(|word| word.as_str()))),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    words! {
        /// For the tests below.
        pub enum Mood {
            /// Fine.
            Good = "good",
            /// Not fine.
            Bad = "Bad",
        }
    }

    #[test]
    fn a_word_is_spelled_the_same_everywhere() {
        for &mood in Mood::ALL {
            assert_eq!(serde_json::to_value(mood).unwrap(), mood.as_str());
            assert_eq!(mood.to_string(), mood.as_str());
            assert_eq!(mood.as_str().parse(), Ok(mood));
        }
    }

    #[test]
    fn an_unknown_word_is_refused_with_the_known_ones() {
        let error = "bad".parse::<Mood>().unwrap_err();
        assert_eq!(error.to_string(), "unknown word, expected one of good, Bad");
        assert!(serde_json::from_str::<Mood>("\"bad\"").is_err());
    }
}
