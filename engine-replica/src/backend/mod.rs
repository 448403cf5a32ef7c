//! The coarse operations that a model is made of, each with its shapes and numeric contract.
