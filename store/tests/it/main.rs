//! One story, told on every back end.
