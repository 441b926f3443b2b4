//! The structured form of label selectors, as it stands in manifests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{LabelSelector, Requirement, Test};
use crate::metadata::{StringMap, null_is_default};

/// Selects objects by their labels. All parts must hold; an empty selector matches everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MatchSelector {
    /// Labels that must be there with exactly these values.
    #[serde(skip_serializing_if = "StringMap::is_empty", deserialize_with = "null_is_default")]
    pub match_labels: StringMap,
    /// Further requirements, each on one label.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<MatchExpression>,
}

/// One requirement on one label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MatchExpression {
    /// The label's key.
    pub key: String,
    /// How the label's value relates to `values`.
    pub operator: MatchOperator,
    /// The values; at least one for In and NotIn, none for Exists and DoesNotExist.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<String>,
}

words! {
    /// How a label's value relates to the values given.
    pub enum MatchOperator {
        /// It is one of them.
        In = "In",
        /// It is none of them, or the label is absent.
        NotIn = "NotIn",
        /// The label is there.
        Exists = "Exists",
        /// The label is absent.
        DoesNotExist = "DoesNotExist",
    }
}

/// Why a structured selector is not valid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field}: {message}")]
pub struct MatchSelectorError {
    /// The field that is wrong, below the selector.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl TryFrom<&MatchSelector> for LabelSelector {
    type Error = MatchSelectorError;

    fn try_from(selector: &MatchSelector) -> Result<Self, MatchSelectorError> {
        let mut requirements =
            Vec::with_capacity(selector.match_labels.len() + selector.match_expressions.len());
        for (key, value) in &selector.match_labels {
            let requirement = Requirement::new(key, Test::In(vec![value.clone()]));
            requirements.push(requirement.map_err(|message| refuse(format!("matchLabels[{key}]"), message))?);
        }
        for (index, expression) in selector.match_expressions.iter().enumerate() {
            let requirement = expression.test().and_then(|test| Requirement::new(&expression.key, test));
            requirements
                .push(requirement.map_err(|message| refuse(format!("matchExpressions[{index}]"), message))?);
        }
        Ok(Self::new(requirements))
    }
}

impl MatchExpression {
    fn test(&self) -> Result<Test, String> {
        Ok(match self.operator {
            MatchOperator::In => Test::In(self.values.clone()),
            MatchOperator::NotIn => Test::NotIn(self.values.clone()),
            MatchOperator::Exists | MatchOperator::DoesNotExist if !self.values.is_empty() => {
                return Err("may not have values when the operator is Exists or DoesNotExist".to_owned());
            }
            MatchOperator::Exists => Test::Exists,
            MatchOperator::DoesNotExist => Test::DoesNotExist,
        })
    }
}

fn refuse(field: String, message: String) -> MatchSelectorError {
    MatchSelectorError { field, message }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(selector: serde_json::Value) -> Result<String, String> {
        let selector: MatchSelector = serde_json::from_value(selector).unwrap();
        let selector = LabelSelector::try_from(&selector).map_err(|error| error.to_string())?;
        Ok(selector.to_string())
    }

    #[test]
    fn labels_and_expressions_become_requirements() {
        let selector = json!({
            "matchLabels": {"a": "b"},
            "matchExpressions": [
                {"key": "c", "operator": "In", "values": ["e", "d"]},
                {"key": "f", "operator": "NotIn", "values": ["g"]},
                {"key": "h", "operator": "Exists"},
                {"key": "i", "operator": "DoesNotExist", "values": null},
            ],
        });
        assert_eq!(read(selector), Ok("a=b,c in (d,e),f!=g,h,!i".to_owned()));
        assert_eq!(read(json!({})), Ok(String::new()));
    }

    #[test]
    fn refusals_name_the_field() {
        let error = read(json!({"matchLabels": {"a": "b c"}})).unwrap_err();
        assert!(error.starts_with("matchLabels[a]: a valid label must be"));
        let error = read(json!({"matchExpressions": [{"key": "a", "operator": "In"}]})).unwrap_err();
        assert_eq!(error, "matchExpressions[0]: for 'in', 'notin' operators, values set can't be empty");
        let exists = json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]});
        assert!(read(exists).unwrap_err().starts_with("matchExpressions[0]: may not have values"));
    }
}
