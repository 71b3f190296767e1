//! Texts of JSON, JavaScript and YAML: how they are read and written, and where in them a value stands.

pub(crate) mod json_problem;
pub(crate) mod place;
pub(crate) mod span;
pub(crate) mod surrogates;
pub(crate) mod yaml;
pub(crate) mod yaml_text;
