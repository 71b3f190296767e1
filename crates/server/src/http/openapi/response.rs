//! Responses of operations.

use aide::{
    generate::GenContext,
    openapi::{self, HeaderStyle, ParameterSchemaOrContent, ReferenceOr, Response},
};
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::Value;

use super::schema::{self, media, object};

/// The name of a header, the JSON type of its value, and its description.
pub type Header = (&'static str, &'static str, &'static str);

/// Describes a response with a JSON body of this type by the documentation of the type.
pub fn response<T: JsonSchema>(context: &mut GenContext) -> Response {
    let schema = schema::for_response::<T>(context);
    let description = context.resolve_schema(&schema).get("description").and_then(Value::as_str);
    let description = description.unwrap_or("Success.").to_owned();
    with_body(&description, schema)
}

/// Adds headers to a response.
pub fn with_headers(mut response: Response, headers: &[Header]) -> Response {
    let described = headers.iter().map(|(name, kind, description)| {
        let header = openapi::Header {
            description: Some((*description).to_owned()),
            style: HeaderStyle::Simple,
            required: false,
            deprecated: None,
            format: ParameterSchemaOrContent::Schema(object(json_schema!({ "type": kind }))),
            example: None,
            examples: [].into(),
            extensions: [].into(),
        };
        ((*name).to_owned(), ReferenceOr::Item(header))
    });
    response.headers.extend(described);
    response
}

/// A response whose JSON body has this schema.
pub(super) fn with_body(description: &str, schema: Schema) -> Response {
    let content = [("application/json".to_owned(), media(schema))].into();
    Response { description: description.to_owned(), content, ..Response::default() }
}
