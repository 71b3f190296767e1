//! Names that a text shares with what stands around it on a network, and functions that are used outside of their blocks.

use oxc::{
    ast::{
        AstKind,
        ast::{FunctionType, Statement, VariableDeclarationKind},
    },
    semantic::{NodeId, ReferenceId, SymbolId},
    span::{GetSpan as _, Span},
};

use super::text::Text;
use crate::lint::{
    finding::{Finding, Rule},
    target::engine::{Engine, Syntax},
};

/// Assignments to what the network imports. A `let`, `const` or `class` of that name is another variable.
pub(super) fn read_only(text: &Text<'_, '_>) -> Vec<Finding> {
    let scoping = text.source.semantic.scoping();
    let is_write = |id: &&ReferenceId| scoping.get_reference(**id).is_write();
    let mut found = Vec::new();
    for name in text.target.imports() {
        let unresolved = scoping.root_unresolved_references();
        let own = unresolved.iter().filter(|(other, _)| other.as_str() == *name).flat_map(|(_, ids)| ids.iter());
        let variable = scoping.iter_bindings_in(scoping.root_scope_id()).find(|symbol| {
            scoping.symbol_name(*symbol) == *name && scoping.symbol_flags(*symbol).is_function_scoped_declaration()
        });
        let of_variable = variable.into_iter().flat_map(|symbol| scoping.get_resolved_reference_ids(symbol));
        let written = own.chain(of_variable).filter(is_write).map(|id| scoping.get_reference(*id).node_id());
        let written = written.chain(variable.and_then(|symbol| initialized(text, symbol)));
        let lines = written.filter(|node| text.runs(*node) && !text.source.is_tried(*node));
        if let Some(line) = lines.map(|node| text.source.line(text.start(node))).min() {
            let message = format!("assigns `{name}`, which {} imports: it is read-only", text.target.title());
            found.push(Finding::about(Rule::ReadOnly, line, name, message));
        }
    }
    found
}

/// The declaration of a variable with a value.
fn initialized(text: &Text<'_, '_>, symbol: SymbolId) -> Option<NodeId> {
    let node = text.source.semantic.scoping().symbol_declaration(symbol);
    match text.source.semantic.nodes().kind(node) {
        AstKind::VariableDeclarator(variable) => variable.init.as_ref().map(|_| node),
        _ => None,
    }
}

/// A `const`, `let` or `class` at the top level with a name that the network declares, too.
pub(super) fn declared_twice(text: &Text<'_, '_>) -> Option<Finding> {
    let name = text.target.declares()?;
    let at = text.source.program.body.iter().find_map(|statement| match statement {
        Statement::VariableDeclaration(variables) if variables.kind != VariableDeclarationKind::Var => {
            let is_same = variables
                .declarations
                .iter()
                .any(|variable| variable.id.get_identifier_name().is_some_and(|own| own.as_str() == name));
            is_same.then_some(variables.span.start)
        }
        Statement::ClassDeclaration(class) => {
            class.id.as_ref().filter(|id| id.name.as_str() == name).map(|id| id.span.start)
        }
        _ => None,
    })?;
    let message = format!("declares `{name}`, which {} declares, too", text.target.title());
    Some(Finding::at(Rule::SyntaxError, text.source.line(at), message))
}

/// A `const`, `let` or `class` at the top level of a script with the name of a global that cannot be declared again.
pub(super) fn reserved(text: &Text<'_, '_>) -> Option<Finding> {
    if text.target.is_module() || !matches!(text.target.engine(), Engine::QuickJs | Engine::Goja) {
        return None;
    }
    let scoping = text.source.semantic.scoping();
    let symbol = scoping.iter_bindings_in(scoping.root_scope_id()).find(|symbol| {
        let is_fixed = ["undefined", "NaN", "Infinity"].contains(&scoping.symbol_name(*symbol));
        is_fixed && !scoping.symbol_flags(*symbol).is_function_scoped_declaration()
    })?;
    let line = text.source.line(text.start(scoping.symbol_declaration(symbol)));
    let message = format!("declares `{}`, which scripts have already", scoping.symbol_name(symbol));
    Some(Finding::at(Rule::SyntaxError, line, message))
}

/// Finds a clash with the function that the network declares behind the text: the text replaces that function, or has
/// its own of that name replaced.
pub(super) fn declared_behind(text: &Text<'_, '_>) -> Option<Finding> {
    let (name, title) = (text.target.declares()?, text.target.title());
    let scoping = text.source.semantic.scoping();
    let own = scoping.iter_bindings_in(scoping.root_scope_id()).find(|symbol| scoping.symbol_name(*symbol) == name);
    let unresolved = scoping.root_unresolved_references().iter().filter(|(other, _)| other.as_str() == name);
    let of_own = own.into_iter().flat_map(|symbol| scoping.get_resolved_reference_ids(symbol));
    let ids: Vec<&ReferenceId> = unresolved.flat_map(|(_, ids)| ids.iter()).chain(of_own).collect();
    let first = |is_one: &dyn Fn(&ReferenceId) -> bool| {
        let nodes = ids.iter().filter(|id| is_one(id)).map(|id| scoping.get_reference(**id).node_id());
        nodes.map(|node| text.start(node)).min()
    };
    let initial = own.and_then(|symbol| initialized(text, symbol)).map(|node| text.start(node));
    let assigned = initial.or_else(|| first(&|id| scoping.get_reference(*id).is_write()));
    if let Some(at) = assigned {
        let message = format!("assigns `{name}`, which {title} declares and calls");
        return Some(Finding::at(Rule::SyntaxError, text.source.line(at), message));
    }
    let is_function = own.is_some_and(|symbol| scoping.symbol_flags(symbol).is_function());
    let at = first(&|id| scoping.get_reference(*id).is_read()).filter(|_| is_function)?;
    let message = format!("calls its own `{name}`, in whose place {title} declares another");
    Some(Finding::at(Rule::SyntaxError, text.source.line(at), message))
}

/// Functions that are used outside of the block that declares them, which only engines with the rules of browsers allow.
pub(super) fn block_functions(text: &Text<'_, '_>) -> Vec<Finding> {
    if text.target.engine().has(Syntax::BlockFunction) {
        return Vec::new();
    }
    let nodes = text.source.semantic.nodes();
    let found = nodes.iter().filter_map(|node| match (node.kind(), nodes.parent_kind(node.id())) {
        (AstKind::Function(function), block @ (AstKind::BlockStatement(_) | AstKind::SwitchCase(_))) => {
            let id = function.id.as_ref().filter(|_| function.r#type == FunctionType::FunctionDeclaration)?;
            let line = text.source.line(used_outside(text, id.symbol_id(), block.span())?);
            let (name, engine) = (id.name.as_str(), text.target.engine().name());
            let message =
                format!("uses `{name}` outside of the block that declares it, where {engine} has no `{name}`");
            Some(Finding::about(Rule::MissingGlobal, line, name, message))
        }
        _ => None,
    });
    found.collect()
}

/// Returns the first use of a function outside of its block, as an offset in bytes.
fn used_outside(text: &Text<'_, '_>, function: SymbolId, block: Span) -> Option<u32> {
    let scoping = text.source.semantic.scoping();
    let references = scoping.get_resolved_reference_ids(function).iter();
    let nodes = references.map(|id| scoping.get_reference(*id).node_id()).filter(|node| text.runs(*node));
    nodes.map(|node| text.start(node)).filter(|at| !(block.start..block.end).contains(at)).min()
}
