"""Cameras."""
