//! Assignments to members of `Buffer` that have no setter, in strict code: it may be the class that a network imports, or a
//! function of that name in the text, which takes the place of the class and gets its members.

use oxc::{
    ast::{
        AstKind,
        ast::{Expression, MemberExpression},
    },
    semantic::NodeId,
};

use super::text::Text;
use crate::lint::finding::{Finding, Rule};

/// Maximum number of variables that are followed from a member to its object.
const DEPTH_MAX: usize = 4;
/// Methods of the imported class that make an instance.
const MAKERS: [&str; 5] = ["alloc", "allocUnsafe", "allocUnsafeSlow", "concat", "from"];

/// Assignments to members without a setter of what the network imports.
pub(super) fn without_setter(text: &Text<'_, '_>) -> Vec<Finding> {
    let nodes = text.source.semantic.nodes();
    let mut found = Vec::new();
    for class in text.target.imports() {
        let assigned = nodes.iter().filter_map(|node| {
            let member = match node.kind() {
                AstKind::AssignmentExpression(assignment) => assignment.left.as_member_expression(),
                AstKind::UpdateExpression(update) => update.argument.as_member_expression(),
                _ => None,
            }?;
            let name = member.static_property_name()?;
            text.target.getters().contains(&name).then_some((node.id(), member, name))
        });
        let own = Class { text, name: class };
        let mut refused = assigned.filter(|(node, member, _)| {
            own.is_instance(*node, member.object(), DEPTH_MAX) && text.runs(*node) && !text.source.is_tried(*node)
        });
        if let Some((node, _, name)) = refused.next() {
            let line = text.source.line(text.start(node));
            let title = text.target.title();
            let message = format!("assigns `{name}` of `{class}`, which {title} imports: no setter for property");
            found.push(Finding::about(Rule::ReadOnly, line, class, message));
        }
    }
    found
}

/// An imported class, or the function that takes its place.
struct Class<'t, 'a> {
    text: &'t Text<'t, 'a>,
    name: &'static str,
}

impl Class<'_, '_> {
    /// Returns true if a value at a node is an instance, or the prototype of all of them.
    fn is_instance(&self, node: NodeId, value: &Expression<'_>, depth_max: usize) -> bool {
        let Some(depth_max) = depth_max.checked_sub(1) else { return false };
        let source = self.text.source;
        match value.get_inner_expression() {
            Expression::ThisExpression(_) => self.is_method(node),
            Expression::NewExpression(new) => self.is_class(&new.callee),
            Expression::CallExpression(call) => call.callee.get_member_expr().is_some_and(|method| {
                let is_maker = method.static_property_name().is_some_and(|name| MAKERS.contains(&name));
                is_maker && !source.has_binding(self.name) && self.is_class(method.object())
            }),
            Expression::Identifier(name) => source.initial(name).is_some_and(|value| {
                let scoping = source.semantic.scoping();
                let symbol = name.reference_id.get().and_then(|id| scoping.get_reference(id).symbol_id());
                let declared = symbol.map(|symbol| scoping.symbol_declaration(symbol));
                declared.is_some_and(|declared| self.is_instance(declared, value, depth_max))
            }),
            other => other.as_member_expression().is_some_and(|member| self.is_prototype(member)),
        }
    }

    fn is_prototype(&self, member: &MemberExpression<'_>) -> bool {
        member.static_property_name() == Some("prototype") && self.is_class(member.object())
    }

    /// Returns true if a name stands for the class: no scope of the text has another one of that name, but its top
    /// level may have a function.
    fn is_class(&self, value: &Expression<'_>) -> bool {
        let Expression::Identifier(name) = value.get_inner_expression() else { return false };
        let scoping = self.text.source.semantic.scoping();
        let symbol = name.reference_id.get().and_then(|id| scoping.get_reference(id).symbol_id());
        let is_own = symbol.is_none_or(|symbol| {
            let is_top_level = scoping.symbol_scope_id(symbol) == scoping.root_scope_id();
            is_top_level && scoping.symbol_flags(symbol).is_function()
        });
        name.name.as_str() == self.name && is_own
    }

    /// Returns true if the function around a node is the function of the class, or a method of it.
    fn is_method(&self, node: NodeId) -> bool {
        let source = self.text.source;
        let nodes = source.semantic.nodes();
        let mut functions = nodes.ancestors(node).filter(|ancestor| matches!(ancestor.kind(), AstKind::Function(_)));
        let Some(function) = functions.next() else { return false };
        let scoping = source.semantic.scoping();
        let is_class = match function.kind() {
            AstKind::Function(own) => own.id.as_ref().is_some_and(|id| {
                let is_top_level = scoping.symbol_scope_id(id.symbol_id()) == scoping.root_scope_id();
                is_top_level && id.name.as_str() == self.name
            }),
            _ => false,
        };
        let is_method = match nodes.parent_kind(function.id()) {
            AstKind::AssignmentExpression(assignment) => {
                let method = assignment.left.as_member_expression();
                method
                    .and_then(|method| method.object().as_member_expression())
                    .is_some_and(|inner| self.is_prototype(inner))
            }
            _ => false,
        };
        is_class || is_method
    }
}
