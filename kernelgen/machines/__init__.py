"""What is known of machines and their devices, as values.

Rooms: ascend.
Reading order: device_features.

Rooms: ascend.
Reading order: device_features.
"""
