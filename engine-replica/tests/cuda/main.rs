//! The CUDA backend as a whole on the simulated GPU: a model through it, and the program's start with every kind of driver.

#[cfg(test)]
mod model;
#[cfg(test)]
mod start;
