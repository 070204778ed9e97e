"""Exact nearest rows under mixed distances."""
