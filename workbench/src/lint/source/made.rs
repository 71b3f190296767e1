//! Globals that a text makes without declaring them: as members of the global object.

use std::collections::BTreeSet;

use oxc::{
    ast::{
        AstKind,
        ast::{Argument, CallExpression, Expression, FormalParameters, IdentifierReference, ObjectPropertyKind},
    },
    semantic::{AstNode, NodeId, Semantic},
    span::GetSpan as _,
};

use super::{is_function, key_name};

/// Maximum depth at which the global object is searched for in an expression.
const DEPTH_MAX: usize = 4;

/// The names of members that are assigned to, or defined of, the global object.
pub(super) fn globals<'a>(semantic: &Semantic<'a>) -> BTreeSet<&'a str> {
    let mut made = BTreeSet::new();
    for node in semantic.nodes().iter() {
        match node.kind() {
            AstKind::AssignmentExpression(assignment) => {
                if let Some(member) = assignment.left.as_member_expression()
                    && let Some(name) = member.static_property_name()
                    && is_global(semantic, node.id(), member.object(), DEPTH_MAX)
                {
                    made.insert(name);
                }
            }
            AstKind::CallExpression(call) => made.extend(defined(semantic, node.id(), call)),
            _ => {}
        }
    }
    made
}

/// Returns the names in `Object.defineProperty(globalThis, name, …)` and `Object.assign(globalThis, { name: … })`.
fn defined<'a>(semantic: &Semantic<'a>, node: NodeId, call: &CallExpression<'a>) -> Vec<&'a str> {
    let Some(method) = call.callee.get_member_expr().filter(|method| method.object().is_specific_id("Object")) else {
        return Vec::new();
    };
    let object = call.arguments.first().and_then(Argument::as_expression);
    if !object.is_some_and(|object| is_global(semantic, node, object, DEPTH_MAX)) {
        return Vec::new();
    }
    match (method.static_property_name(), call.arguments.get(1)) {
        (Some("defineProperty"), Some(Argument::StringLiteral(name))) => vec![name.value.as_str()],
        (Some("assign" | "defineProperties"), Some(Argument::ObjectExpression(object))) => {
            let members = object.properties.iter().filter_map(|property| match property {
                ObjectPropertyKind::ObjectProperty(property) => key_name(&property.key),
                ObjectPropertyKind::SpreadProperty(_) => None,
            });
            members.collect()
        }
        _ => Vec::new(),
    }
}

/// Returns true if a value is the global object: by its name, as `this` outside of functions, or as an argument of a
/// function that packers put around a text.
fn is_global(semantic: &Semantic<'_>, node: NodeId, value: &Expression<'_>, depth_max: usize) -> bool {
    let Some(depth_max) = depth_max.checked_sub(1) else { return false };
    let is_one = |value: &Expression<'_>| is_global(semantic, node, value, depth_max);
    match value.get_inner_expression() {
        Expression::Identifier(name) if name.name.as_str() == "globalThis" => {
            semantic.is_reference_to_global_variable(name)
        }
        Expression::Identifier(name) => {
            argument(semantic, name).is_some_and(|(call, value)| is_global(semantic, call, value, depth_max))
        }
        Expression::ThisExpression(_) => is_this_global(semantic, node),
        Expression::ConditionalExpression(either) => is_one(&either.consequent) || is_one(&either.alternate),
        Expression::LogicalExpression(either) => is_one(&either.left) || is_one(&either.right),
        _ => false,
    }
}

/// Returns true if `this` is the global object of a script: outside of functions, and in those that are called at once.
fn is_this_global(semantic: &Semantic<'_>, node: NodeId) -> bool {
    let nodes = semantic.nodes();
    let function = nodes.ancestors(node).find(|ancestor| matches!(ancestor.kind(), AstKind::Function(_)));
    function.is_none_or(|function| call(semantic, function.id()).is_some())
}

/// The call of a function that stands for itself where it is called.
fn call<'a>(semantic: &Semantic<'a>, function: NodeId) -> Option<(NodeId, &'a CallExpression<'a>)> {
    let nodes = semantic.nodes();
    let span = nodes.kind(function).span();
    let around = nodes.ancestors(function).find(|node| !matches!(node.kind(), AstKind::ParenthesizedExpression(_)))?;
    match around.kind() {
        AstKind::CallExpression(call) => call.callee.span().contains_inclusive(span).then_some((around.id(), call)),
        _ => None,
    }
}

/// Returns the argument for a parameter whose function is called where it is written, with the call.
fn argument<'a>(semantic: &Semantic<'a>, name: &IdentifierReference<'_>) -> Option<(NodeId, &'a Expression<'a>)> {
    let (scoping, nodes) = (semantic.scoping(), semantic.nodes());
    let symbol = scoping.get_reference(name.reference_id.get()?).symbol_id()?;
    let declared = scoping.symbol_declaration(symbol);
    let at = nodes.kind(declared).span().start;
    let holds = |parameters: &FormalParameters<'_>| {
        parameters.items.iter().position(|parameter| (parameter.span.start..parameter.span.end).contains(&at))
    };
    let function = std::iter::once(declared)
        .chain(nodes.ancestors(declared).map(AstNode::id))
        .find(|node| is_function(nodes.kind(*node)))?;
    let index = match nodes.kind(function) {
        AstKind::Function(function) => holds(&function.params)?,
        AstKind::ArrowFunctionExpression(function) => holds(&function.params)?,
        _ => return None,
    };
    let (call, arguments) = call(semantic, function).map(|(node, call)| (node, &call.arguments))?;
    arguments.get(index).and_then(Argument::as_expression).map(|value| (call, value))
}
