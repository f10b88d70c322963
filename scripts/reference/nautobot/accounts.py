"""
Accounts of the tests, for `nautobot-server shell`: a superuser, and one that may do no more than Berth's documents ask
for. Prints their tokens as JSON.
"""

import json

from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from nautobot.users.models import ObjectPermission, Token

User = get_user_model()


def allow(user, name, models, actions, constraints=None):
    permission = ObjectPermission.objects.create(name=name, actions=actions, constraints=constraints)
    for model in models:
        app, kind = model.split(".")
        permission.object_types.add(ContentType.objects.get(app_label=app, model=kind))
    permission.users.add(user)


admin = User.objects.create_superuser("admin", "admin@example.com", "admin")
berth = User.objects.create_user("berth", "berth@example.com", "berth")
allow(berth, "Berth: records of pods", ["ipam.ipaddress"], ["view", "add", "change", "delete"])
allow(berth, "Berth: leased prefixes", ["ipam.prefix"], ["view", "add", "change", "delete"])
allow(berth, "Berth: names", ["ipam.namespace", "extras.status", "extras.tag", "extras.role"], ["view"])
print(json.dumps({user.username: Token.objects.create(user=user).key for user in (admin, berth)}))
