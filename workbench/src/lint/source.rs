//! A parsed text: the places of its parts, and those that can run.

mod made;

use std::collections::{BTreeMap, BTreeSet};

use oxc::{
    allocator::Allocator,
    ast::{
        AstKind,
        ast::{
            BindingPattern, Declaration, Expression, FunctionType, IdentifierReference, Program, PropertyKey,
            Statement, VariableDeclaration, VariableDeclarator,
        },
    },
    diagnostics::LabeledSpan,
    parser::Parser,
    semantic::{AstNode, NodeId, Semantic, SemanticBuilder},
    span::{GetSpan, SourceType, Span},
};

/// A text, read as a script or as a module.
pub(crate) struct Source<'a> {
    pub(crate) program: &'a Program<'a>,
    pub(crate) semantic: Semantic<'a>,
    /// Errors with their offsets in bytes, in order.
    pub(crate) errors: Vec<(u32, String)>,
    units: Vec<Unit<'a>>,
    /// The globals that it makes by assigning members of the global object.
    made: BTreeSet<&'a str>,
}

/// A statement at the top level.
struct Unit<'a> {
    span: Span,
    /// The functions that it only declares; none if it runs when the text is evaluated.
    names: Vec<&'a str>,
}

impl<'a> Source<'a> {
    pub(crate) fn read(allocator: &'a Allocator, text: &'a str, is_module: bool) -> Self {
        let kind = if is_module { SourceType::mjs() } else { SourceType::script() };
        let parsed = Parser::new(allocator, text, kind).parse();
        let program = &*allocator.alloc(parsed.program);
        let built = SemanticBuilder::new().with_check_syntax_error(true).with_build_nodes(true).build(program);
        let diagnostics = parsed.diagnostics.into_vec().into_iter().chain(built.diagnostics.into_vec());
        let mut errors: Vec<(u32, String)> = diagnostics
            .map(|error| {
                let at = error.labels.iter().map(LabeledSpan::offset).min().unwrap_or_default();
                (at, error.message.to_string())
            })
            .collect();
        errors.sort();
        let units = program.body.iter().map(Unit::new).collect();
        let made = made::globals(&built.semantic);
        Self { program, semantic: built.semantic, errors, units, made }
    }

    /// The line, from 1, at an offset in bytes.
    pub(crate) fn line(&self, at: u32) -> u32 {
        line(self.semantic.source_text(), at)
    }

    /// The functions and variables that the text declares at its top level.
    pub(crate) fn has_binding(&self, name: &str) -> bool {
        let scoping = self.semantic.scoping();
        scoping.iter_bindings_in(scoping.root_scope_id()).any(|symbol| scoping.symbol_name(symbol) == name)
    }

    /// Returns true if the text makes a global of this name as a member of the global object: `globalThis.name = 1`.
    pub(crate) fn makes_global(&self, name: &str) -> bool {
        self.made.contains(name)
    }

    /// Returns true if a block declares a function of this name.
    pub(crate) fn has_block_function(&self, name: &str) -> bool {
        let nodes = self.semantic.nodes();
        nodes.iter().any(|node| match (node.kind(), nodes.parent_kind(node.id())) {
            (AstKind::Function(function), AstKind::BlockStatement(_) | AstKind::SwitchCase(_)) => {
                let is_declared = function.r#type == FunctionType::FunctionDeclaration;
                is_declared && function.id.as_ref().is_some_and(|id| id.name.as_str() == name)
            }
            _ => false,
        })
    }

    /// The value of a variable that is declared with it, and that nothing assigns again.
    pub(crate) fn initial(&self, name: &IdentifierReference<'_>) -> Option<&'a Expression<'a>> {
        let scoping = self.semantic.scoping();
        let symbol = scoping.get_reference(name.reference_id.get()?).symbol_id()?;
        if scoping.symbol_is_mutated(symbol) || scoping.symbol_declarations(symbol).count() > 1 {
            return None;
        }
        match self.semantic.nodes().kind(scoping.symbol_declaration(symbol)) {
            AstKind::VariableDeclarator(VariableDeclarator {
                id: BindingPattern::BindingIdentifier(_),
                init: Some(value),
                ..
            }) => Some(value),
            _ => None,
        }
    }

    /// Returns the parts of the text that can run, if a network calls `entries`.
    pub(crate) fn live(&self, entries: &[&str]) -> Live {
        let mut used: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        self.references().for_each(|(unit, name)| used.entry(unit).or_default().push(name));
        let mut declared: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, unit) in self.units.iter().enumerate() {
            unit.names.iter().for_each(|name| declared.entry(name).or_default().push(index));
        }
        let runs = |unit: &Unit<'_>| unit.names.is_empty() || unit.names.iter().any(|name| entries.contains(name));
        let mut live: Vec<bool> = self.units.iter().map(runs).collect();
        let mut next: Vec<usize> = (0..live.len()).filter(|index| live[*index]).collect();
        while let Some(index) = next.pop() {
            // Each name counts once.
            for name in used.remove(&index).unwrap_or_default() {
                for unit in declared.remove(name).unwrap_or_default() {
                    if !std::mem::replace(&mut live[unit], true) {
                        next.push(unit);
                    }
                }
            }
        }
        let dead = self.units.iter().zip(live).filter(|(_, is_live)| !is_live);
        Live { dead: dead.map(|(unit, _)| unit.span).collect() }
    }

    /// Each name that is used, with the statement that uses it.
    fn references(&self) -> impl Iterator<Item = (usize, &'a str)> + '_ {
        self.semantic.nodes().iter().filter_map(|node| match node.kind() {
            AstKind::IdentifierReference(name) => Some((self.unit_at(name.span.start)?, name.name.as_str())),
            _ => None,
        })
    }

    fn unit_at(&self, at: u32) -> Option<usize> {
        self.units.partition_point(|unit| unit.span.start <= at).checked_sub(1)
    }

    /// The function around a node; none at the top level.
    pub(crate) fn function(&self, node: NodeId) -> Option<NodeId> {
        let nodes = self.semantic.nodes();
        nodes.ancestors(node).find(|ancestor| is_function(ancestor.kind())).map(AstNode::id)
    }

    /// Returns the offset from which the variable at `node` has its new value: behind the value that is assigned to it.
    pub(crate) fn assigned_at(&self, node: NodeId) -> u32 {
        let span = self.semantic.nodes().kind(node).span();
        match self.semantic.nodes().parent_kind(node) {
            AstKind::AssignmentExpression(assignment) if assignment.left.span() == span => assignment.span.end,
            _ => span.end,
        }
    }

    /// Returns true if a node runs whenever the function around it does: no condition, loop or `try` is in between.
    pub(crate) fn is_sure(&self, node: NodeId) -> bool {
        let ancestors = self.semantic.nodes().ancestors(node);
        let inside = ancestors.map(AstNode::kind).take_while(|kind| !is_function(*kind));
        !inside.into_iter().any(|kind| {
            matches!(
                kind,
                AstKind::IfStatement(_)
                    | AstKind::ConditionalExpression(_)
                    | AstKind::LogicalExpression(_)
                    | AstKind::ChainExpression(_)
                    | AstKind::SwitchCase(_)
                    | AstKind::TryStatement(_)
                    | AstKind::ForStatement(_)
                    | AstKind::ForInStatement(_)
                    | AstKind::ForOfStatement(_)
                    | AstKind::WhileStatement(_)
            )
        })
    }

    /// Returns true if the node is in a `try` block that catches what it throws.
    pub(crate) fn is_tried(&self, node: NodeId) -> bool {
        let span = self.semantic.nodes().kind(node).span();
        self.semantic.nodes().ancestors(node).any(|ancestor| match ancestor.kind() {
            AstKind::TryStatement(tried) => tried.handler.is_some() && tried.block.span.contains_inclusive(span),
            _ => false,
        })
    }
}

fn is_function(kind: AstKind<'_>) -> bool {
    matches!(kind, AstKind::Function(_) | AstKind::ArrowFunctionExpression(_))
}

impl<'a> Unit<'a> {
    fn new(statement: &Statement<'a>) -> Self {
        let names = match statement {
            Statement::FunctionDeclaration(function) => function.id.iter().map(|id| id.name.as_str()).collect(),
            Statement::VariableDeclaration(variables) => functions(variables),
            Statement::ExportDeclaration(export) => match &export.declaration {
                Declaration::FunctionDeclaration(function) => function.id.iter().map(|id| id.name.as_str()).collect(),
                Declaration::VariableDeclaration(variables) => functions(variables),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        Self { span: statement.span(), names }
    }
}

/// The names of variables, if all of them are functions.
fn functions<'a>(variables: &VariableDeclaration<'a>) -> Vec<&'a str> {
    let function = |variable: &VariableDeclarator<'a>| match (&variable.id, &variable.init) {
        (
            BindingPattern::BindingIdentifier(id),
            Some(Expression::FunctionExpression(_) | Expression::ArrowFunctionExpression(_)),
        ) => Some(id.name.as_str()),
        _ => None,
    };
    variables.declarations.iter().map(function).collect::<Option<_>>().unwrap_or_default()
}

/// The name of a member, if it is written down.
pub(crate) fn key_name<'a>(key: &PropertyKey<'a>) -> Option<&'a str> {
    match key {
        PropertyKey::StaticIdentifier(name) => Some(name.name.as_str()),
        PropertyKey::StringLiteral(name) => Some(name.value.as_str()),
        _ => None,
    }
}

/// The parts of a text that can run.
pub(crate) struct Live {
    dead: Vec<Span>,
}

impl Live {
    pub(crate) fn has(&self, at: u32) -> bool {
        let before = self.dead.partition_point(|span| span.start <= at);
        before.checked_sub(1).is_none_or(|last| at >= self.dead[last].end)
    }
}

/// The line, from 1, at an offset in bytes.
pub(crate) fn line(text: &str, at: u32) -> u32 {
    let before = text.as_bytes().get(..at as usize).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count() as u32
}
