//! Parameters of operations.

use aide::{
    generate::GenContext,
    openapi::{Operation, Parameter, ParameterData, ParameterSchemaOrContent, PathStyle, ReferenceOr},
    operation::{ParamLocation, parameters_from_schema},
};
use schemars::JsonSchema;
use serde_json::Value;

use super::schema::{self, object};

/// Adds a path parameter of this type, named after its position in the path.
pub fn path_parameter<T: JsonSchema>(context: &mut GenContext, operation: &mut Operation) {
    let schema = schema::for_request::<T>(context);
    let resolved = context.resolve_schema(&schema);
    let description = resolved.get("description").and_then(Value::as_str).map(str::to_owned);
    let example = resolved.get("examples").and_then(|examples| examples.get(0)).cloned();
    let parameter_data = ParameterData {
        name: String::new(),
        description,
        required: true,
        deprecated: None,
        format: ParameterSchemaOrContent::Schema(object(schema)),
        example,
        examples: [].into(),
        explode: None,
        extensions: [].into(),
    };
    operation.parameters.push(ReferenceOr::Item(Parameter::Path { parameter_data, style: PathStyle::Simple }));
}

/// Adds a query parameter for every member of this type.
pub fn query_parameters<T: JsonSchema>(context: &mut GenContext, operation: &mut Operation) {
    let schema = schema::for_query::<T>();
    let parameters = parameters_from_schema(context, schema, ParamLocation::Query);
    operation.parameters.extend(parameters.into_iter().map(ReferenceOr::Item));
}

/// Names the path parameters of an operation, in order.
pub(super) fn name(operation: &mut Operation, names: &[&str]) {
    let parameters = operation.parameters.iter_mut().filter_map(|parameter| match parameter.as_item_mut() {
        Some(Parameter::Path { parameter_data, .. }) => Some(parameter_data),
        _ => None,
    });
    for (parameter, name) in parameters.zip(names) {
        (*name).clone_into(&mut parameter.name);
    }
}
