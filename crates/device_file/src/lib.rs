#![doc = include_str!("../README.md")]

mod csv;
mod error;
mod fields;
mod json;
mod plan;
mod read;
mod row;

pub use self::{
    csv::write as write_csv,
    error::Error,
    fields::{BadField, remove_empty_keys, remove_keys},
    json::write as write_json,
    plan::{Allowed, BadRow, Plan, Planned, Step, leave_out_session, new_device, plan},
    read::{Format, read},
    row::Row,
};
