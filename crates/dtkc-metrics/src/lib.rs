//! Clustering metrics: ACC, NMI, ARI, silhouette, confusion, shares.
