//! Declares settings, with the default of each beside it.

/// Declares a struct of settings. A field has the default behind its `=`, or else that of its type.
#[macro_export]
macro_rules! settings {
    (@default) => {
        Default::default()
    };
    (@default $default:expr) => {
        $default
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty $(= $default:expr)?,)+
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::settings!(@default $($default)?),)+ }
            }
        }
    };
}
