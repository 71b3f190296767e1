//! Applications, gateways and components, their collaborators, owners and keys.

mod applications;
mod collaborators;
mod components;
mod frequency_plans;
mod gateway_locations;
mod gateway_views;
mod gateways;
mod indexes;
mod keys;
mod owners;
