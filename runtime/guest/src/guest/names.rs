//! Property names and class ids that are looked up once, when the guest is built.

use crate::js::{Atom, Realm};

/// Property names used by calls.
pub(crate) struct Names {
    pub(crate) bytes: Atom,
    pub(crate) data: Atom,
    pub(crate) errors: Atom,
    pub(crate) f_port: Atom,
    /// For each slot, the file name of its source in backtraces.
    pub(crate) files: [Atom; 4],
    pub(crate) fields: Atom,
    pub(crate) message: Atom,
    pub(crate) name: Atom,
    pub(crate) payload: Atom,
    pub(crate) port: Atom,
    pub(crate) recv_time: Atom,
    pub(crate) stack: Atom,
    pub(crate) to_json: Atom,
    pub(crate) variables: Atom,
    pub(crate) warnings: Atom,
}

impl Names {
    pub(crate) fn new(realm: Realm) -> Self {
        Self {
            bytes: realm.atom("bytes"),
            data: realm.atom("data"),
            errors: realm.atom("errors"),
            f_port: realm.atom("fPort"),
            files: ["decoder", "converter", "validator", "encoder"].map(|name| realm.atom(name)),
            fields: realm.atom("fields"),
            message: realm.atom("message"),
            name: realm.atom("name"),
            payload: realm.atom("payload"),
            port: realm.atom("port"),
            recv_time: realm.atom("recvTime"),
            stack: realm.atom("stack"),
            to_json: realm.atom("toJSON"),
            variables: realm.atom("variables"),
            warnings: realm.atom("warnings"),
        }
    }

    /// Makes the shapes of the objects that TS013 functions are called with.
    pub(crate) fn make_shapes(&self, realm: Realm) {
        realm.make_shape([self.bytes, self.f_port, self.recv_time]);
        realm.make_shape([self.data, self.f_port]);
    }
}

/// The internal classes of `new Number(1)` and the other boxed primitives, which JSON unboxes.
pub(crate) struct Boxes {
    pub(crate) number: u32,
    pub(crate) text: u32,
    pub(crate) boolean: u32,
    pub(crate) big_integer: u32,
}

impl Boxes {
    pub(crate) fn new(realm: Realm) -> Option<Self> {
        let class = |expression| realm.value_of(expression).ok().map(|value| value.class());
        Some(Self {
            number: class(c"Object(0)")?,
            text: class(c"Object('')")?,
            boolean: class(c"Object(false)")?,
            big_integer: class(c"Object(0n)")?,
        })
    }
}
