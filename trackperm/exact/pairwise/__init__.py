"""Sums over pairs of examples, which are linear in the swaps, and the weights of their examples."""

from trackperm.exact.pairwise.influences import Influences, PairMean, PartShares, influences_of
from trackperm.exact.pairwise.scores import PairScores, coded_scores, ranked_scores
from trackperm.exact.pairwise.weights import PairSums, Roles, compared_pairs, ranked_pairs, require_room

__all__ = [
    "Influences",
    "PairMean",
    "PairScores",
    "PairSums",
    "PartShares",
    "Roles",
    "coded_scores",
    "compared_pairs",
    "influences_of",
    "ranked_pairs",
    "ranked_scores",
    "require_room",
]
