//! Rights to applications, gateways and components.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// A text that is not a right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("right `{given}` is unknown; allowed are {allowed}")]
pub struct UnknownRight {
    given: String,
    allowed: String,
}

macro_rules! rights {
    ($(#[doc = $doc:literal])+ $name:ident { $($(#[doc = $variant_doc:literal])+ $variant:ident = $text:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[doc = $variant_doc])+ $variant,)+ }

        impl $name {
            /// All rights of this kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the right as written in APIs.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl From<$name> for &'static str {
            fn from(right: $name) -> Self {
                right.as_str()
            }
        }

        impl FromStr for $name {
            type Err = UnknownRight;

            fn from_str(text: &str) -> Result<Self, UnknownRight> {
                Self::ALL.iter().copied().find(|right| right.as_str() == text).ok_or_else(|| UnknownRight {
                    given: text.to_owned(),
                    allowed: [$($text),+].join(", "),
                })
            }
        }

        $crate::serde_as_text!($name);

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(self.as_str())
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": [$($text),+] })
            }
        }
    };
}

rights! {
    /// A right to an application.
    ApplicationRight {
        /// View and edit settings, EUIs and access keys.
        Settings = "settings",
        /// Delete and restore it.
        Delete = "delete",
        /// Add and remove collaborators.
        Collaborators = "collaborators",
        /// Read uplinks and events.
        MessagesUpRead = "messages:up:r",
        /// Send uplinks as if from a device.
        MessagesUpWrite = "messages:up:w",
        /// Send downlinks.
        MessagesDownWrite = "messages:down:w",
        /// List, view and change devices.
        Devices = "devices",
    }
}

rights! {
    /// A right to a gateway.
    GatewayRight {
        /// View and edit settings.
        Settings = "gateway:settings",
        /// Delete it.
        Delete = "gateway:delete",
        /// Add and remove collaborators.
        Collaborators = "gateway:collaborators",
        /// View its status.
        Status = "gateway:status",
        /// View its exact location.
        Location = "gateway:location",
        /// View its owner.
        Owner = "gateway:owner",
        /// Read its messages.
        Messages = "gateway:messages",
    }
}

rights! {
    /// A right to a network component.
    ComponentRight {
        /// View and edit settings, and get tokens.
        Settings = "component:settings",
        /// Delete it.
        Delete = "component:delete",
        /// Add and remove collaborators.
        Collaborators = "component:collaborators",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Conformance: Of applications: `settings`, `delete`, `collaborators`, `messages:up:r`
    // Conformance: Of gateways: `gateway:settings`, `gateway:delete`, `gateway:collaborators`
    // Conformance: Of components: `component:settings`, `component:delete`
    #[test]
    fn every_right_survives_a_round_trip() {
        for right in ApplicationRight::ALL {
            assert_eq!(right.as_str().parse(), Ok(*right));
        }
    }

    #[test]
    fn an_unknown_right_is_refused_with_the_allowed_ones() {
        let error = "gateway:settings".parse::<ApplicationRight>().unwrap_err();
        assert!(error.to_string().contains("messages:down:w"), "{error}");
    }
}
