//! Values of a YAML document, each with its place.

use std::{ops::Range, sync::Arc};

use serde_json::{Map, Value};

use crate::text::place::Step;

/// A value and where it is written.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// The line of its beginning, from 1.
    pub(crate) line: usize,
    /// The column of its beginning, from 0, in characters.
    pub(crate) column: usize,
    /// Range in bytes, with its anchor and tag. That of an empty value is right after its colon.
    pub(crate) range: Range<usize>,
    /// Shared with the aliases of it.
    pub(super) content: Arc<Content>,
    pub(super) size: Size,
}

/// Size of a value with all in it, if every alias is written out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Size {
    pub(super) values: usize,
    pub(super) bytes: usize,
}

/// A value with the places of all in it.
#[derive(Clone, Debug)]
pub(super) enum Content {
    /// A value, and how it is written.
    Scalar(Value, String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Default for Content {
    fn default() -> Self {
        Self::Scalar(Value::Null, String::new())
    }
}

impl Node {
    /// The value, without places.
    pub(crate) fn value(&self) -> Value {
        match &*self.content {
            Content::Scalar(value, _) => value.clone(),
            Content::List(nodes) => Value::Array(nodes.iter().map(Self::value).collect()),
            Content::Map(members) => {
                Value::Object(members.iter().map(|(name, node)| (name.clone(), node.value())).collect::<Map<_, _>>())
            }
        }
    }

    /// A scalar as it is written, without quotes: `00 07` and `0102` are hexadecimal, whatever YAML makes of them.
    pub(crate) fn text(&self) -> Option<&str> {
        match &*self.content {
            Content::Scalar(_, text) => Some(text),
            _ => None,
        }
    }

    /// A member of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match &*self.content {
            Content::Map(members) => members.iter().find(|(other, _)| other == name).map(|(_, node)| node),
            _ => None,
        }
    }

    /// The member of an object that is written last.
    pub(crate) fn last_member(&self) -> Option<&Self> {
        match &*self.content {
            Content::Map(members) => members.last().map(|(_, node)| node),
            _ => None,
        }
    }

    /// The names of an object's members.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let members = if let Content::Map(members) = &*self.content { members.as_slice() } else { &[] };
        members.iter().map(|(name, _)| name.as_str())
    }

    /// The elements of a list; none of anything else.
    pub(crate) fn elements(&self) -> &[Self] {
        match &*self.content {
            Content::List(nodes) => nodes,
            _ => &[],
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(*self.content, Content::Map(_))
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(*self.content, Content::List(_))
    }

    /// Returns true for an object or a list.
    pub(crate) fn is_container(&self) -> bool {
        !matches!(*self.content, Content::Scalar(..))
    }

    /// The node at `path`.
    pub(crate) fn find(&self, path: &[Step]) -> Option<&Self> {
        path.iter().try_fold(self, |node, step| match step {
            Step::Index(index) => node.elements().get(*index),
            Step::Name(name) => node.get(name),
        })
    }
}
